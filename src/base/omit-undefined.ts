/** The same fields; those that may be undefined are optional instead. */
export type OmitUndefined<Fields> = {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** Leaves out undefined fields: an optional field is absent then, never there without a value. */
export function omitUndefined<Fields extends object>(fields: Fields): OmitUndefined<Fields> {
  const kept: Partial<Fields> = {};
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept as unknown as OmitUndefined<Fields>;
}
