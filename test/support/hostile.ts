/** Whether this is the long form of the hostile tests: `npm run test:hostile` sets `KCORE_HOSTILE=full`. */
export const isLongForm = process.env["KCORE_HOSTILE"] === "full";

/**
 * How often a hostile test tries (or how long it may take, in milliseconds): `short` in every run, where a test takes seconds; `long`
 * in `npm run test:hostile`, which runs the files whose names end in `hostile.test.ts`.
 */
export function tries(short: number, long: number): number {
  return isLongForm ? long : short;
}

/** Prints a measurement of the long form, for the table in docs/security.md; the short form prints nothing. */
export function tellLongForm(text: string): void {
  if (isLongForm) console.log(`      ${text}`);
}
