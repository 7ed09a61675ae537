/**
 * The values of an expression's top-level names: `params`, `node`, `nodes`, `vars`, `item`, `facts`, `steps`, `stages`,
 * `run`. They are plain values, Maps, Secrets, or Unknown for a value that only the run brings.
 */
export type Scope = Readonly<Record<string, unknown>>;
