/** Some names as one text: one of them, or a row of numbered ones (`n1…n40`). */
export interface Fold {
  readonly text: string;
  readonly count: number;
}

/** Fewer names are listed one by one. */
const least = 4;

/** Folds four and more names whose number counts up into the first and the last; other names stay as they are. */
export function foldNames(names: readonly string[]): readonly Fold[] {
  const rows: { readonly names: string[]; place: number | undefined }[] = [];
  for (const name of names) {
    const row = rows.at(-1);
    const place = row && countedAt(row.names.at(-1) ?? "", name);
    if (row && place !== undefined && (row.place ?? place) === place) {
      row.names.push(name);
      row.place = place;
    } else rows.push({ names: [name], place: undefined });
  }
  return rows.flatMap(({ names: row }) =>
    row.length < least
      ? row.map((text) => ({ text, count: 1 }))
      : [{ text: `${row[0]}…${row.at(-1)}`, count: row.length }],
  );
}

/** The place of the number that is one more than in the name before, if nothing else differs. */
function countedAt(before: string, name: string): number | undefined {
  const [one, other] = [before.split(/(\d+)/), name.split(/(\d+)/)];
  if (one.length !== other.length) return undefined;
  const places = one.flatMap((part, place) => (part === other[place] ? [] : [place]));
  const [place] = places;
  return places.length === 1 && place !== undefined && isNext(one[place] ?? "", other[place] ?? "") ? place : undefined;
}

/** `009` and `010`, `9` and `10`; not `9` and `010`. */
function isNext(one: string, other: string): boolean {
  const isAlike = one.length === other.length || (!one.startsWith("0") && !other.startsWith("0"));
  return /^\d{1,15}$/.test(one) && isAlike && Number(other) === Number(one) + 1;
}
