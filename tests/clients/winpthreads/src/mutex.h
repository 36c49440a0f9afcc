/* The released tests include this header of the sources, which the released sources no longer have. */
