"""Authorization: the actor of a request, its workspace, team and project, and the objects it may read and change."""
