import { rm, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { run } from "#base/process.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import { findProject } from "../project/find-project.ts";
import { reconcileSettings } from "../project/project-settings.ts";
import { toStderr } from "../terminal/say.ts";

/** The name of a project's units. It has the path as systemd escapes paths, so that each project has units of its own. */
export function unitName(project: string): string {
  const hexOf = (text: string): string =>
    [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  const path = project.replaceAll(/\/+/g, "/").replaceAll(/^\/|\/$/g, "");
  const escaped = path.replaceAll(/^\.|[^A-Za-z0-9:_./]+/g, hexOf).replaceAll("/", "-");
  return `kcore-reconcile-${escaped}`;
}

/** The texts of service and timer for a project. The timer counts from the end of a pass, so passes never overlap. */
export function unitsOf(
  project: string,
  user: string,
  interval: string,
): Readonly<Record<"service" | "timer", string>> {
  // Words as in systemd.service(5), “Command lines”.
  const quoted = (word: string): string => `"${word.replaceAll(/[\\"]/g, "\\$&").replaceAll(/[%$]/g, "$&$&")}"`;
  const { PATH = "/usr/bin:/bin", KCORE_HOME } = process.env;
  const home = KCORE_HOME === undefined ? "" : `Environment=${quoted(`KCORE_HOME=${KCORE_HOME}`)}\n`;
  return {
    service: `[Unit]
Description=A pass of kcore reconcile
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
User=${user}
Environment=${quoted(`PATH=${PATH}`)}
${home}ExecStart=${quoted(join(shippedRoot(), "bin", "kcore"))} reconcile --project ${quoted(project)}
# 3: nodes are down; 4: a person has to decide.
SuccessExitStatus=3 4
`,
    timer: `[Unit]
Description=Passes of kcore reconcile

[Timer]
OnActiveSec=10
OnUnitInactiveSec=${interval}
AccuracySec=1

[Install]
WantedBy=timers.target
`,
  };
}

/** Installs the timer of a project, or removes it. @throws KcoreError USAGE, RECONCILE_UNSET, RECONCILE_TIMER */
export async function setTimer(given: string | undefined, isWanted: boolean): Promise<void> {
  const project = findProject(given);
  if (process.getuid?.() !== 0)
    throw usageError("the units lie in /etc/systemd/system", "sudo kcore reconcile --install; the passes run as you");
  const name = unitName(project);
  const fileOf = (ending: string): string => `/etc/systemd/system/${name}.${ending}`;
  if (!isWanted) {
    await control("disable", "--now", `${name}.timer`);
    for (const ending of ["service", "timer"]) await rm(fileOf(ending), { force: true });
    await control("daemon-reload");
    return toStderr(`${name}.timer is gone`);
  }
  const user = process.env["SUDO_USER"] ?? userInfo().username;
  const units = unitsOf(project, user, reconcileSettings(project).interval);
  for (const [ending, text] of Object.entries(units)) await writeFile(fileOf(ending), text);
  await control("daemon-reload");
  await control("enable", "--now", `${name}.timer`);
  toStderr(`${name}.timer makes the passes; their log: journalctl -u ${quoteWord(name)}`);
}

async function control(...words: readonly string[]): Promise<void> {
  const { code, stderr } = await run(["systemctl", ...words], { limitMs: 60_000 });
  if (code === 0) return;
  throw new KcoreError({
    code: "RECONCILE_TIMER",
    message: `systemctl ${words.join(" ")} failed: ${stderr.trim() || `exit code ${code}`}`,
    hint: "without systemd, let cron call kcore reconcile --project DIR",
  });
}
