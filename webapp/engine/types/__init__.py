"""Field types, one module for each subject. `registry` lists them all."""
