"""Training of models in runs that resume, whatever kind they are and whatever they are scored on."""
