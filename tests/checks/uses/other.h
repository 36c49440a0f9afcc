/* A library that knows nothing of Windows, and has functions with two of its names. */
int other_calls(void);
