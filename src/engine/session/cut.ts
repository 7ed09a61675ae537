/** The text's first characters, with a mark where more was. Nothing of a longer text lives on with it. */
export function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${Buffer.from(text.slice(0, characters).toWellFormed()).toString("utf8")}…`;
}
