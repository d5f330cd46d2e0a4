"""What is done in the browser before each picture: one module for each part of the product."""
