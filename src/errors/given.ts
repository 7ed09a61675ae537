/** The fields that have a value: what is optional in an object is absent there, not undefined. */
export function given<Fields extends object>(
  fields: Fields,
): { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields> & {
    readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined>;
  };
}
