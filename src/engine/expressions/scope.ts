/**
 * The values of the top names of an expression: `params`, `node`, `nodes`, `vars`, `item`, `facts`, `steps`, `stages`,
 * `run`. Plain values, Maps, Secrets, and Unknown where only the run will tell.
 */
export type Scope = Readonly<Record<string, unknown>>;
