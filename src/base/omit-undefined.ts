/** The same fields, but optional in place of possibly undefined. */
export type OmitUndefined<Fields> = {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** A copy without the fields that are undefined, as `exactOptionalPropertyTypes` requires of optional fields. */
export function omitUndefined<Fields extends object>(fields: Fields): OmitUndefined<Fields> {
  const kept: Partial<Fields> = {};
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept as unknown as OmitUndefined<Fields>;
}
