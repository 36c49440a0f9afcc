/* The released tests include this header of the sources, which the released sources do not have any more. */
