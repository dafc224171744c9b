"""Methods that turn partial labels into many ordinary two-class problems."""
