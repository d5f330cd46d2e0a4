"""Exports: files of templates and datasets that a worker creates, whole or in parts."""
