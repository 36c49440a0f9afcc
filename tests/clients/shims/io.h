/* What there is of files is in files.h. -idirafter: a header of this name in Interlock comes first. */
