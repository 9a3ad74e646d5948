"""The tables of a profile: schema, columns and `ProfileData`."""
