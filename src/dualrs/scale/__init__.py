"""The same sampling jobs on several processes or machines, through Ray: an executor in the place of the engine."""
