import { rm, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { run } from "#base/process.ts";
import { parseDuration } from "#base/units.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { findProject } from "../project/find-project.ts";
import { readSettings } from "../project/project-settings.ts";
import { toStderr } from "../terminal/say.ts";

/** The facts that the units are made of. */
export interface TimerFacts {
  readonly project: string;
  /** The launcher of kcore. */
  readonly program: string;
  readonly user: string;
  /** Seconds between the end of a pass and the next one. */
  readonly seconds: number;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The texts of service and timer. The timer counts from the end of a pass, so passes never overlap. */
export function unitsOf({
  project,
  program,
  user,
  seconds,
  env,
}: TimerFacts): Readonly<Record<"service" | "timer", string>> {
  const about = `[Unit]\nDescription=kcore reconcile in ${project.replaceAll("%", "%%")}\n`;
  const variables = ["PATH", "KCORE_HOME"].flatMap((name) =>
    env[name] === undefined ? [] : `Environment=${quoted(`${name}=${env[name]}`)}\n`,
  );
  return {
    service: `${about}Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
User=${user}
${variables.join("")}ExecStart=${quoted(program)} reconcile --project ${quoted(project)}
# 3: nodes are down; 4: a person has to decide.
SuccessExitStatus=3 4
`,
    timer: `${about}
[Timer]
OnActiveSec=10
OnUnitInactiveSec=${seconds}
AccuracySec=1

[Install]
WantedBy=timers.target
`,
  };
}

/** A word of a unit file (systemd.service(5), “Command lines”). */
function quoted(word: string): string {
  return `"${word.replaceAll(/[\\"]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;
}

/** Installs the timer of a project, or removes it. @throws KcoreError USAGE, RECONCILE_TIMER */
export async function setTimer(given: string | undefined, isWanted: boolean): Promise<void> {
  const project = findProject(given);
  if (process.getuid?.() !== 0)
    throw usageError("the units lie in /etc/systemd/system", "sudo kcore reconcile --install; the passes run as you");
  const name = `kcore-reconcile${project.replaceAll(/[^A-Za-z0-9]+/g, "-")}`;
  const user = process.env["SUDO_USER"] ?? userInfo().username;
  const seconds = parseDuration(readSettings(project).reconcile?.interval ?? "10m") ?? 600;
  const program = join(shippedRoot(), "bin", "kcore");
  const units = Object.entries(unitsOf({ project, program, user, seconds, env: process.env }));
  if (!isWanted) await control("disable", "--now", `${name}.timer`);
  for (const [ending, text] of units) {
    const file = `/etc/systemd/system/${name}.${ending}`;
    await (isWanted ? writeFile(file, text) : rm(file, { force: true }));
  }
  await control("daemon-reload");
  if (isWanted) await control("enable", "--now", `${name}.timer`);
  toStderr(isWanted ? `${name}.timer makes the passes; their log: journalctl -u ${name}` : `${name}.timer is gone`);
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
