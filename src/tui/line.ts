/** One line of the plain view; the mark before it tells what kind of news it is. */
export interface PlainLine {
  readonly mark: "started" | "done" | "failed" | "skipped" | "output" | "title" | "warning";
  readonly text: string;
}
