"""The use cases: plain functions that take an Actor first. No view logic, no HTTP."""
