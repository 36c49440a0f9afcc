"""Runs the agents of bench/, makes the statistics, the tables, the plots and the document."""
