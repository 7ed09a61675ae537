/** The same fields; those that may be undefined are optional instead. */
export type OmitUndefined<Fields> = {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** A copy without the fields that are undefined, as `exactOptionalPropertyTypes` requires of optional fields. */
export function omitUndefined<Fields extends object>(fields: Fields): OmitUndefined<Fields> {
  const copy: Partial<Fields> = {};
  for (const key in fields) if (fields[key] !== undefined) copy[key] = fields[key];
  return copy as unknown as OmitUndefined<Fields>;
}
