"""Who acts, in which workspace, team and project, and which objects they may see and change."""
