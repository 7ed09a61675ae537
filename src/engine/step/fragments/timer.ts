import type { ShellText } from "../shell-text.ts";

interface SystemdTimer {
  readonly name: string;
  readonly service?: string | undefined;
  readonly onCalendar: readonly string[];
  readonly onBootSec?: string | undefined;
  readonly onUnitActiveSec?: string | undefined;
  readonly persistent: boolean;
  readonly randomizedDelay?: string | undefined;
  readonly description?: string | undefined;
}

/** The text of a timer (systemd.timer(5)), which starts `service`, by default the service of its own name. */
export function timerText(timer: SystemdTimer): string {
  const { name, service = `${name}.service`, onCalendar, persistent, description = `Starts ${service}` } = timer;
  return unitText({
    Unit: [["Description", literal(description)]],
    Timer: [
      ["Unit", service],
      ...onCalendar.map((one): Entry => ["OnCalendar", one]),
      ["OnBootSec", timer.onBootSec],
      ["OnUnitActiveSec", timer.onUnitActiveSec],
      ["RandomizedDelaySec", timer.randomizedDelay],
      ["Persistent", persistent ? "yes" : undefined],
    ],
    Install: [["WantedBy", "timers.target"]],
  });
}

interface Service {
  readonly name: string;
  readonly command?: ShellText | readonly string[] | undefined;
  readonly user?: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly description?: string | undefined;
}

/** The text of the service that runs the timer's command (systemd.service(5)). */
export function serviceText({ name, command = [], user, environment, description = name }: Service): string {
  const argv = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
  return unitText({
    Unit: [["Description", literal(description)]],
    Service: [
      ["Type", "oneshot"],
      ["User", user],
      ...Object.entries(environment).map(([key, value]): Entry => ["Environment", quoted(`${key}=${value}`)]),
      ["ExecStart", argv.map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")],
    ],
  });
}

type Entry = readonly [key: string, value: string | undefined];

function unitText(sections: Readonly<Record<string, readonly Entry[]>>): string {
  const blocks = Object.entries(sections).map(([name, entries]) => {
    const lines = entries.flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}\n`]));
    return `[${name}]\n${lines.join("")}`;
  });
  return `# Managed by kcore.\n${blocks.join("\n")}`;
}

/** Escapes specifiers (systemd.unit(5)). */
function literal(text: string): string {
  return text.replaceAll("%", "%%");
}

/** One word of a command line or of Environment= (systemd.syntax(7), Quoting). */
function quoted(word: string): string {
  return /^[A-Za-z0-9_/.,:=@+-]+$/.test(word) ? word : `"${literal(word).replaceAll(/[\\"]/g, String.raw`\$&`)}"`;
}
