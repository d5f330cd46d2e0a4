"""The pages on which templates are created and changed, and drafts that are not saved."""
