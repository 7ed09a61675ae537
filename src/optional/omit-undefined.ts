/** These fields without those that may be undefined; they are optional instead. */
export type Defined<Fields> = {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** Leaves out what is undefined: an optional field is absent then, never there without a value. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const kept: Partial<Fields> = {};
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept as unknown as Defined<Fields>;
}
