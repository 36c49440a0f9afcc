/* The functions of files are in files.h. -idirafter: a header of this name in Interlock comes first. */
