export type Path = readonly (string | number)[];

/** Tells a problem at a path below a layout. */
export type Refuse = (path: Path, message: string, hint?: string) => void;

/** Each name once. */
export function checkNames(what: string, list: readonly { readonly name: string }[], path: Path, refuse: Refuse): void {
  for (const [index, { name }] of list.entries())
    if (list.findIndex((other) => other.name === name) < index)
      refuse([...path, index, "name"], `the ${what} ${name} is here twice`, "give one of them another name");
}
