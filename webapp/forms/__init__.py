"""Forms of the pages. They are made from the pydantic models that check the input, so nothing is declared twice."""
