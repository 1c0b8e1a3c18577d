/** The keys and positions that lead to a value. */
export type Path = readonly (string | number)[];
