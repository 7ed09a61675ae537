/** The codes of each role on a terminal without colours: bold, dim and inverse. */
const plainCodes = {
  plain: "",
  strong: "1",
  muted: "2",
  accent: "1",
  ok: "",
  changed: "",
  failed: "1",
  running: "",
  warning: "1",
  added: "",
  removed: "",
  stderr: "",
  title: "1",
  banner: "7",
  selected: "7",
};

/** The meaning of a piece of text; a theme decides its look. */
export type TextRole = keyof typeof plainCodes;

/** Shapes that carry meaning without colour: in Unicode, and in ASCII for terminals that know no more. */
const shapes = {
  ok: ["✓", "="],
  changed: ["◆", "*"],
  wouldChange: ["◇", "~"],
  failed: ["✗", "X"],
  skipped: ["⊘", "-"],
  unknown: ["?", "?"],
  interrupted: ["!", "!"],
  pending: ["·", "."],
  warning: ["▲", "!"],
  /** The pictures of the wheel; each is shown for a second. */
  running: ["◐◓◑◒", "|/-\\"],
  pointer: ["▸", ">"],
  rule: ["─", "-"],
  bar: ["│", "|"],
  /** A rule, three columns wide, from which a bar hangs. */
  hung: ["─┬─", "-+-"],
  /** From nothing to all, in eight steps. */
  levels: ["▁▂▃▄▅▆▇█", "_.-:=+*#"],
  barDone: ["━", "#"],
  barLeft: ["─", "-"],
  arrow: ["→", "->"],
  ellipsis: ["…", "~"],
  dot: ["·", "|"],
  enter: ["⏎", "Enter"],
  upDown: ["↑↓", "Up/Dn"],
  leftRight: ["←→", "Lt/Rt"],
  up: ["↑", "^"],
  down: ["↓", "v"],
  play: ["▶", ">"],
  pause: ["‖", "="],
  dash: ["–", "-"],
} as const;

export type Glyphs = Readonly<Record<keyof typeof shapes, string>>;

function glyphsOf(unicode: boolean): Glyphs {
  const glyphs = Object.entries(shapes).map(([name, forms]) => [name, forms[unicode ? 0 : 1]]);
  return Object.fromEntries(glyphs) as Glyphs;
}

/** The colours and shapes of a terminal, as a plain value. */
export interface Theme {
  /** Colours that the terminal shows: none (NO_COLOR), its own 16, or 256. */
  readonly depth: 0 | 16 | 256;
  readonly background: "dark" | "light" | "unknown";
  readonly unicode: boolean;
  readonly glyphs: Glyphs;
  /** The text in the role's colours; nothing but the text where it has none. The text holds no sequences of its own. */
  readonly paint: (role: TextRole, text: string) => string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The theme for a terminal, by `NO_COLOR` (no-color.org), `FORCE_COLOR=0`, `COLORTERM` and `TERM` (`dumb` and `linux` have no Unicode shapes).
 * `LC_ALL`/`LC_CTYPE`/`LANG` must say UTF-8 for Unicode; `KCORE_BACKGROUND=dark|light` overrides `COLORFGBG`.
 */
export function detectTheme(env: Environment, stdout?: Pick<NodeJS.WriteStream, "getColorDepth">): Theme {
  return createTheme({ depth: depthOf(env, stdout), background: backgroundOf(env), unicode: hasUnicode(env) });
}

export function createTheme({ depth, background, unicode }: Pick<Theme, "depth" | "background" | "unicode">): Theme {
  const codes = codesOf(depth, background);
  return {
    depth,
    background,
    unicode,
    glyphs: glyphsOf(unicode),
    paint: (role, text) => (codes[role] === "" || text === "" ? text : `\u001b[${codes[role]}m${text}\u001b[0m`),
  };
}

function depthOf(env: Environment, stdout: Pick<NodeJS.WriteStream, "getColorDepth"> | undefined): Theme["depth"] {
  if ((env["NO_COLOR"] ?? "") !== "" || env["FORCE_COLOR"] === "0" || env["TERM"] === "dumb") return 0;
  const bits = stdout?.getColorDepth(env as object) ?? 4;
  if (bits >= 8) return 256;
  return bits > 1 ? 16 : 0;
}

/** `COLORFGBG` is “foreground;background” in the numbers of the 16 colours, as rxvt and Konsole set it. */
function backgroundOf(env: Environment): Theme["background"] {
  const chosen = env["KCORE_BACKGROUND"];
  if (chosen === "dark" || chosen === "light") return chosen;
  const number = Number((env["COLORFGBG"] ?? "").split(";").at(-1) || "NaN");
  if (!Number.isInteger(number)) return "unknown";
  return number === 7 || number > 8 ? "light" : "dark";
}

function hasUnicode(env: Environment): boolean {
  if (env["TERM"] === "linux" || env["TERM"] === "dumb") return false;
  // POSIX: LC_ALL wins over the category, the category over LANG; empty counts as unset.
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return /utf-?8/i.test(locale);
}

type ColouredRole = "muted" | "accent" | "ok" | "changed" | "failed" | "running" | "warning";
type Palette = Readonly<Record<ColouredRole, string>>;

/**
 * Blue, orange and vermilion, bluish green: the pairs that matter (ok and failed, added and removed) stay apart for
 * red-green blindness (Okabe and Ito, “Color Universal Design”). `unknown` has middle tones: contrast 3:1 and more
 * on white and on black.
 */
const palettes: Readonly<Record<Theme["background"], Palette>> = {
  dark: {
    muted: "38;5;245",
    accent: "38;5;117",
    ok: "38;5;79",
    changed: "38;5;221",
    failed: "38;5;209",
    running: "38;5;75",
    warning: "38;5;215",
  },
  light: {
    muted: "38;5;242",
    accent: "38;5;25",
    ok: "38;5;29",
    changed: "38;5;94",
    failed: "38;5;160",
    running: "38;5;26",
    warning: "38;5;130",
  },
  unknown: {
    muted: "38;5;244",
    accent: "38;5;32",
    ok: "38;5;29",
    changed: "38;5;136",
    failed: "38;5;166",
    running: "38;5;32",
    warning: "38;5;130",
  },
};

/** The terminal's own colours are readable on its own background. */
const sixteen: Palette = {
  muted: "2",
  accent: "36",
  ok: "32",
  changed: "33",
  failed: "31",
  running: "34",
  warning: "33",
};

function codesOf(depth: Theme["depth"], background: Theme["background"]): Readonly<Record<TextRole, string>> {
  if (depth === 0) return plainCodes;
  const palette = depth === 16 ? sixteen : palettes[background];
  return {
    ...plainCodes,
    ...palette,
    failed: `1;${palette.failed}`,
    warning: `1;${palette.warning}`,
    added: palette.ok,
    removed: palette.failed,
    stderr: palette.warning,
    title: `1;${palette.accent}`,
    banner: `1;7;${palette.changed}`,
    selected: `1;7;${palette.accent}`,
  };
}
