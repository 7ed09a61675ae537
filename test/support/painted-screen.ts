/** A terminal's screen (`tmux capture-pane -e`) as an HTML page: the same cells in the same colours. */
export function screenPage(
  painted: string,
  { columns, title }: { readonly columns: number; readonly title: string },
): string {
  const lines = painted.replace(/\n$/, "").split("\n").map(paintLine).join("\n");
  return `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 20px; background: #e9edf2; width: max-content; }
figure { margin: 0; border-radius: 10px; overflow: hidden; background: ${background}; box-shadow: 0 6px 24px #0004; }
figcaption { padding: 8px 14px; background: #222a35; color: #9aa7b5; font: 13px system-ui, sans-serif; text-align: center; }
pre { margin: 0; padding: 12px 14px 14px; width: ${columns}ch; color: ${foreground}; font: 14px/1.25 "DejaVu Sans Mono", monospace; }
i { display: inline-block; font-style: normal; text-align: center; width: 1ch; }
</style><figure><figcaption>${escape(title)}</figcaption><pre>${lines}</pre></figure>`;
}

const background = "#12171e";
const foreground = "#d8dee6";
// prettier-ignore
const palette = [
  "#2b3440", "#e5655c", "#6cc38a", "#e2b04f", "#6ea8e8", "#c18ae0", "#5cc4c9", "#c7d0da",
  "#66727f", "#ff8a80", "#8fe0aa", "#ffd173", "#93c4ff", "#dcaef5", "#84e3e6", "#ffffff",
];

interface Style {
  front?: string | undefined;
  back?: string | undefined;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  under?: boolean;
  inverse?: boolean;
  struck?: boolean;
}

function paintLine(line: string): string {
  let style: Style = {};
  let drawn = "";
  // oxlint-disable-next-line no-control-regex -- the pattern reads terminal sequences
  for (const [, codes, text = ""] of line.matchAll(/(?:\u001b\[([\d;]*)m)|([^\u001b]+)/g))
    if (codes !== undefined) style = restyle(style, codes.split(";").map(Number));
    else drawn += `<span style="${cssOf(style)}">${cells(text)}</span>`;
  return drawn;
}

/** The text as HTML. A character that a font may draw wider or narrower than a cell gets an element of its own. */
function cells(text: string): string {
  return Array.from(text, (character) =>
    /[\u0020-\u007e\u2500-\u259f]/.test(character) ? escape(character) : `<i>${escape(character)}</i>`,
  ).join("");
}

function restyle(style: Style, codes: readonly number[]): Style {
  const next = { ...style };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) return restyle({}, codes.slice(at + 1));
    if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.under = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.struck = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 27) next.inverse = false;
    else if (code === 39) next.front = undefined;
    else if (code === 49) next.back = undefined;
    else if (code >= 30 && code <= 37) next.front = palette[code - 30];
    else if (code >= 40 && code <= 47) next.back = palette[code - 40];
    else if (code >= 90 && code <= 97) next.front = palette[code - 82];
    else if (code >= 100 && code <= 107) next.back = palette[code - 92];
    else if (code === 38 || code === 48) {
      const isRgb = codes[at + 1] === 2;
      const color = isRgb ? `rgb(${codes.slice(at + 2, at + 5).join(" ")})` : indexed(codes[at + 2] ?? 0);
      if (code === 38) next.front = color;
      else next.back = color;
      at += isRgb ? 4 : 2;
    }
  }
  return next;
}

/** One of xterm's 256 colours. */
function indexed(index: number): string {
  if (index < 16) return palette[index] ?? foreground;
  if (index >= 232)
    return `rgb(${Array(3)
      .fill(8 + (index - 232) * 10)
      .join(" ")})`;
  const level = (part: number) => (part === 0 ? 0 : 55 + part * 40);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}

function cssOf({ front, back, bold, dim, italic, under, inverse, struck }: Style): string {
  const [ink, paper] = inverse ? [back ?? background, front ?? foreground] : [front, back];
  return [
    ink && `color:${ink}`,
    paper && `background:${paper}`,
    bold && "font-weight:700",
    dim && "opacity:.65",
    italic && "font-style:italic",
    (under || struck) && `text-decoration:${under ? "underline" : "line-through"}`,
  ]
    .filter(Boolean)
    .join(";");
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
