"""From images and networks to votes. Nothing here knows of alpha, of rules or of labels."""
