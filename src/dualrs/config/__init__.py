"""Typed recipes. An unknown key is an error."""

from dualrs.config.read import BUNDLE, load_any, load_recipe, load_rounds
from dualrs.config.recipes import Recipe, RoundsRecipe
from dualrs.config.sections import DataSection, ModelSection

__all__ = ["BUNDLE", "DataSection", "ModelSection", "Recipe", "RoundsRecipe", "load_any", "load_recipe", "load_rounds"]
