"""The inspector of the running bot: counts, times and fixed words, for its operator."""
