/** The context of a position in a shell text; a quoted value may stand in the context "word" only. */
export type Quoting =
  | "word"
  | "in quotes"
  | "in back quotes"
  | "in an arithmetic expansion"
  | "in a here-document"
  | "in a comment"
  | "right behind a backslash"
  | "right behind a $"
  | UnsureQuoting;

/** Constructs that shells parse differently, or that need a full parser: the quoting after them is unknown. */
export type UnsureQuoting = "behind $'" | 'behind a single quote in "${"' | "behind a case in $(";

/** A construct that is still open. Within `$(` quotes begin anew; within `${` they do not. */
type OpenConstruct = '"' | "'" | "`" | "$(" | "$((" | "((" | "${" | "(";

/** A here-document: its delimiter, and how each line is changed before the comparison with the delimiter. */
interface HereDocument {
  readonly end: string;
  readonly stripsTabs: boolean;
  readonly joinsLines: boolean;
}

/**
 * Tracks the context through a POSIX shell text (XCU 2.2, 2.3, 2.6, 2.7.4). The scanner knows quotes, expansions, comments and
 * here-documents; everything else counts as words.
 */
export class QuotingScanner {
  /** The innermost is the last. */
  readonly #open: OpenConstruct[] = [];
  #isComment = false;
  /** Here-documents that begin with the next line. */
  readonly #announced: HereDocument[] = [];
  #document: HereDocument | undefined;
  #line = "";
  #last = " ";
  #isEscaped = false;
  #unsure: UnsureQuoting | undefined;

  get state(): Quoting {
    if (this.#document !== undefined) return "in a here-document";
    if (this.#isComment) return "in a comment";
    // A back quote ends a back-quoted command even inside quotes; an arithmetic expansion is read as if in double quotes.
    if (this.#open.includes("`")) return "in back quotes";
    if (this.#isArithmetic()) return "in an arithmetic expansion";
    if (this.#isQuoted()) return "in quotes";
    if (this.#unsure !== undefined) return this.#unsure;
    if (this.#isEscaped) return "right behind a backslash";
    return this.#last === "$" ? "right behind a $" : "word";
  }

  /** A key of the open quotes, expansions, comments and here-documents: equal before and after a text that closes all that it opens. */
  get context(): string {
    const documents = [this.#document, ...this.#announced].map((one) => one?.end ?? "");
    // The current line counts only while it may still become the here-document's delimiter.
    const line = this.#document?.end.startsWith(this.#line.replace(/^\t+/, "")) === true ? this.#line : "-";
    return [...this.#open, this.#isComment ? "#" : "", this.#isEscaped ? "\\" : "", line, ...documents].join(" ");
  }

  feed(text: string): void {
    const begin = this.#isEscaped && text !== "" ? 1 : 0;
    if (begin > 0) this.feedWord();
    for (let at = begin; at < text.length;) at += this.#step(text, at);
  }

  /** Ends a comment before the line break is scanned; an announced here-document still begins with the next line. */
  endComment(): void {
    this.#isComment = false;
  }

  /** Scans an expression: a word of unknown content. */
  feedWord(): void {
    this.#last = "x";
    this.#isEscaped = false;
  }

  #inner(): readonly OpenConstruct[] {
    return this.#open.slice(this.#open.lastIndexOf("$(") + 1);
  }

  #isArithmetic(): boolean {
    return this.#inner().some((one) => one.endsWith("(("));
  }

  #isQuoted(): boolean {
    const inner = this.#inner();
    return inner.includes('"') || inner.includes("'");
  }

  /** Scans the construct at `at`; returns its length in characters. */
  #step(text: string, at: number): number {
    const char = text[at] ?? "";
    if (char === "\n") return this.#endLine();
    if (this.#document !== undefined) {
      this.#line += char;
      return 1;
    }
    if (this.#isComment) return 1;
    const [inner, depth] = [this.#open.at(-1), this.#open.length];
    const taken = inner === "'" ? this.#inSingle(char) : this.#outside(text, at, char);
    this.#isEscaped = inner !== "'" && char === "\\" && at + 1 === text.length;
    // After an escaped character, or the end of quotes or of an expansion, the same word may continue.
    const isOfWord = taken > 1 ? char === "\\" : this.#open.length < depth && inner !== "(";
    this.#last = isOfWord ? "x" : (text[at + taken - 1] ?? "");
    return taken;
  }

  #endLine(): number {
    if (this.#document?.joinsLines === true && /(?<!\\)(?:\\\\)*\\$/.test(this.#line)) {
      this.#line = this.#line.slice(0, -1);
      return 1;
    }
    if (this.#document !== undefined && endsDocument(this.#line, this.#document)) this.#document = undefined;
    if (this.#document === undefined) this.#document = this.#announced.shift();
    this.#line = "";
    this.#isComment = false;
    this.#last = "\n";
    return 1;
  }

  #inSingle(char: string): number {
    if (char === "'") this.#open.pop();
    return 1;
  }

  #outside(text: string, at: number, char: string): number {
    if (char === "\\") return 2;
    const opening = (["$((", "$(", "${"] as const).find((one) => text.startsWith(one, at));
    if (opening !== undefined) {
      this.#open.push(opening);
      return opening.length;
    }
    if (char === '"' || char === "`") return this.#toggle(char);
    const closing = this.#close(text, at, char);
    if (closing > 0) return closing;
    this.#unsure ??= this.#unsureAt(text, at);
    if (this.#isQuoted()) return 1;
    if (char === "'") {
      this.#open.push("'");
      return 1;
    }
    if (text.startsWith("((", at) && /[\s;&|()]/.test(this.#last)) {
      this.#open.push("((");
      return 2;
    }
    if (char === "(" && this.#open.length > 0) this.#open.push("(");
    if (char === "#" && /[\s;&|()<>]/.test(this.#last) && this.#open.at(-1) !== "${") this.#isComment = true;
    if (this.#isArithmetic()) return 1;
    if (text.startsWith("<<<", at)) return 3;
    const document = /^<<(-?)[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|(\\?)([^\s;&|<>()'"`$]+))/.exec(text.slice(at));
    if (document === null) return 1;
    const [all, dash, single, double, backslash, bare] = document;
    const end = single ?? double ?? bare ?? "";
    this.#announced.push({ end, stripsTabs: dash === "-", joinsLines: bare !== undefined && backslash === "" });
    return all.length;
  }

  #unsureAt(text: string, at: number): UnsureQuoting | undefined {
    if (this.#isQuoted())
      return text[at] === "'" && this.#open.at(-1) === "${" ? 'behind a single quote in "${"' : undefined;
    if (text.startsWith("$'", at)) return "behind $'";
    const isCase = this.#open.includes("$(") && /[\s;&|()]/.test(this.#last) && /^case\s/.test(text.slice(at, at + 5));
    return isCase ? "behind a case in $(" : undefined;
  }

  /** The number of characters that end the innermost open construct; 0: none. */
  #close(text: string, at: number, char: string): number {
    const inner = this.#open.at(-1);
    const isSum = inner === "$((" || inner === "((";
    // `((` opened two subshells, not an arithmetic expansion: this parenthesis ends the inner one.
    if (inner === "((" && char === ")" && !text.startsWith("))", at)) return this.#open.splice(-1, 1, "(").length;
    const isEnd =
      (isSum && text.startsWith("))", at)) ||
      ((inner === "$(" || inner === "(") && char === ")") ||
      (inner === "${" && char === "}");
    if (!isEnd) return 0;
    this.#open.pop();
    return isSum ? 2 : 1;
  }

  #toggle(char: '"' | "`"): number {
    if (this.#open.at(-1) === char) this.#open.pop();
    else this.#open.push(char);
    return 1;
  }
}

function endsDocument(line: string, { end, stripsTabs }: HereDocument): boolean {
  return (stripsTabs ? line.replace(/^\t+/, "") : line) === end;
}
