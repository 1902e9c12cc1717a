"""Typed recipes. An unknown key is an error."""

from dualrs.config.read import BUNDLE, BUNDLED, load_any, load_classifier, load_recipe, load_rounds, recipe_path
from dualrs.config.recipes import ClassifierRecipe, Recipe, RoundsRecipe
from dualrs.config.sections import DataSection, ModelSection

__all__ = [
    "BUNDLE",
    "BUNDLED",
    "ClassifierRecipe",
    "DataSection",
    "ModelSection",
    "Recipe",
    "RoundsRecipe",
    "load_any",
    "load_classifier",
    "load_recipe",
    "load_rounds",
    "recipe_path",
]
