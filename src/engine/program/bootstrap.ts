import { createHash } from "node:crypto";
import { quote } from "#base/quote.ts";
import { shippedText } from "./texts.ts";

/** The one command that is ever given to a login shell: it parses in sh, bash, BusyBox, fish, zsh, csh, tcsh and ksh. */
export const entryCommand = `exec /bin/sh -c 'IFS= read -r k; eval "$k"'`;

/**
 * First line for a shell in which texts of steps run: replaces the shell by one with the environment of steps (follower.sh, k_launch), which
 * reads the next line.
 */
export function stepEnvironment({ nonce, login }: RunVariables): string {
  const user = login === "root" ? "" : ` SUDO_USER=${quote(login)}`;
  return `${unlessOtherReader(nonce)}k=~root;exec env -i "HOME=$k" USER=root LOGNAME=root SHELL=/bin/sh LANG=C.UTF-8 TERM=dumb${user} /bin/sh -c 'IFS= read -r k; eval "$k"'\n`;
}

/** The variables of a run that the shells on the node get. */
export interface RunVariables {
  readonly nonce: string;
  readonly stateDir: string;
  readonly runId: string;
  /** See `SessionOptions.attempt`. */
  readonly attempt: number;
  readonly who: string;
  readonly node: string;
  readonly dryRun: boolean;
  readonly grants: readonly string[];
  /** Grants that do not count, because the disk's table could not be saved first; each with the reason. */
  readonly unsaved?: ReadonlyMap<string, string>;
  readonly login: string;
}

/**
 * Comes before a first line, which {@link entryCommand} reads into `k`. A start-up file of the login may have started
 * another shell, which reads this stdin itself and has no `k`.
 */
function unlessOtherReader(nonce: string, name = "k"): string {
  return `[ -n "\${${name}-}" ]||{ echo ${nonce} fatal ASTRAY;exit 1;};`;
}

/**
 * Comes before the line that follows {@link sudoLine}: if a start-up file of the login has read the sudo line, this shell
 * is not root's.
 */
export function unlessRoot(nonce: string): string {
  return unlessOtherReader(nonce, "k_root");
}

/** First line for a login that is not root: becomes root without a password, or prints `sudo password` or `sudo absent`. */
export function sudoLine(nonce: string): string {
  return `${unlessOtherReader(nonce)}if sudo -n true 2>&1; then exec sudo -n /bin/sh -c 'k_root=1; IFS= read -r k; eval "$k"'; elif command -v sudo >/dev/null; then echo ${nonce} sudo password; else echo ${nonce} sudo absent; fi\n`;
}

/**
 * The mark in the prompt of sudo and in the answer of the root shell. Every user of the node can read arguments, so the
 * mark is a hash of the nonce and does not reveal the nonce.
 */
export function sudoMark(nonce: string): string {
  return createHash("sha256").update(nonce).digest("hex").slice(0, 16);
}

/**
 * First line when sudo wants a password: the next line is the password. sudo prompts with the mark, so a second prompt
 * shows that the password was wrong. Nothing may follow the password before the root shell has printed `MARK root`.
 */
export function sudoPasswordLine(nonce: string): string {
  const mark = sudoMark(nonce);
  // When sudo has ended, `cat` still waits for the bastion's input, so a line reports the end. If sudo asked for no password, the
  // password is still unread: it must be skipped, not run.
  const inner = `echo ${mark} root; until [ "$k" = ${mark}-go ]; do IFS= read -r k || exit 1; done; IFS= read -r k; eval "$k"`;
  return `ulimit -Sc 0; IFS= read -r p; { printf '%s\\n' "$p"; p=; cat; } | { sudo -S -p ${mark}? /bin/sh -c ${quote(inner)}; s=$?; echo ${nonce} sudo ended; exit $s; }\n`;
}

/**
 * The follower's text as {@link wholeText}. `offset`: bytes of the journal that the bastion has; `seen`: the output that it has, as
 * follower.sh describes.
 */
export function followerText(run: RunVariables, { offset, seen }: { offset: number; seen: string }): string {
  const text = [
    ...runAssignments(run),
    `k_login=${quote(run.login)}`,
    `k_offset=${offset}`,
    `k_seen=${quote(seen)}`,
    shippedText("state-folder"),
    shippedText("follower"),
  ].join("\n");
  return wholeText(run, text);
}

/**
 * The line that reads a text, then the text: no part of the text runs before all of it has arrived. If the connection breaks or another
 * program reads this stdin, {@link nonceLine} is not right after the text, and nothing runs.
 */
export function wholeText(run: Pick<RunVariables, "nonce">, text: string): string {
  const { nonce } = run;
  return `${unlessOtherReader(nonce)}${isShort(text) ? readByLines(nonce, text) : readAtOnce(text)};case $l in ${nonce})eval "$k";;*)echo ${nonce} fatal BOOTSTRAP;;esac\n${text}${nonceLine(run)}`;
}

/** Shells read lines byte by byte: of a short text that costs the node less than a process. Only in ASCII do all shells count bytes. */
function isShort(text: string): boolean {
  return /^[\t\n\x20-\x7e]{1,2000}$/.test(text) && text.endsWith("\n");
}

/** Reads the text into `k`, and the line after it into `l`. The default IFS ends with a line break. */
function readByLines(nonce: string, { length }: string): string {
  return `k= n=\${IFS#??};while IFS= read -r l&&[ "$l" != ${nonce} ];do k=$k$l$n;done;[ \${#k} = ${length} ]||l=`;
}

function readAtOnce(text: string): string {
  return `k=$(dd bs=${Buffer.byteLength(text)} count=1 iflag=fullblock 2>/dev/null);IFS= read -r l`;
}

/**
 * The runner's text with its first segment, as a command to the follower. `segment`: the segment's number; `text`: its text; `changed`:
 * keys of steps that changed something earlier in this run; `hasBooted`: the node has booted since the run began.
 */
export function runnerCommand(run: RunVariables, { segment, changed, hasBooted = false, text }: RunnerParts): string {
  const whole = [
    ...runAssignments(run),
    `k_seg=${segment}`,
    `k_changed=${quote(changed.join(" "))}`,
    // Steps get an empty id of the run's boot, which no present boot id equals.
    ...(hasBooted ? ["k_booted="] : []),
    "k_failed=",
    `K_RUN=$K_STATE/runs/$K_RUNID`,
    // The line goes to the steps' shells, where an operator's words must stay quoted, too.
    `k_granted=${quote(`K_GRANTED=${quote(grantedLines(run))}${unsavedLines(run)}`)}`,
    `K_LIB=${quote(`${shippedText("step-functions")}\n${shippedText("step")}`)}`,
    `k_given() {\n:\n${text}\n}`,
    shippedText("lock"),
    shippedText("evidence"),
    shippedText("runner"),
    "",
  ].join("\n");
  return `runner ${Buffer.byteLength(whole)}\n${whole}${nonceLine(run)}`;
}

interface RunnerParts {
  readonly segment: number;
  readonly changed: readonly string[];
  readonly hasBooted?: boolean;
  readonly text: string;
}

/** A segment as a command to the follower whose runner is alive. */
export function segmentCommand(run: RunVariables, number: number, text: string): string {
  return `seg ${number} ${Buffer.byteLength(text)}\n${text}${nonceLine(run)}`;
}

/** The line after bytes that the follower reads by their number: it proves that no byte is missing. */
export function nonceLine({ nonce }: Pick<RunVariables, "nonce">): string {
  return `${nonce}\n`;
}

function grantedLines({ grants }: Pick<RunVariables, "grants">): string {
  return grants.join("\n");
}

/** Grants that do not count, each with the reason in the line after it. */
function unsavedLines({ unsaved = new Map() }: Pick<RunVariables, "unsaved">): string {
  if (unsaved.size === 0) return "";
  return ` K_UNSAVED=${quote([...unsaved].map(([grant, why]) => `${grant}\n${why.replaceAll("\n", " ")}\n`).join(""))}`;
}

export function runAssignments({ nonce, stateDir, runId, attempt, who, node, dryRun, grants }: RunVariables): string[] {
  return [
    `k_nonce=${nonce}`,
    `K_STATE=${quote(stateDir)}`,
    `K_RUNID=${quote(runId)}`,
    // Of equal length, because mksh compares numbers of 32 bits alone.
    `K_ATTEMPT=${String(attempt).padStart(16, "0")}`,
    `K_WHO=${quote(who)}`,
    `K_NODE=${quote(node)}`,
    `K_DRY=${dryRun ? "1" : ""}`,
    `K_GRANTED=${quote(grantedLines({ grants }))}`,
  ];
}
