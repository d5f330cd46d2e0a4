"""The page of a dataset: its diagram, which is the editor, and the destination of its rows."""
