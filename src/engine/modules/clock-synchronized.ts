import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { Duration } from "../step/fields.ts";
import { readTimeServices, saysSynchronized } from "../step/fragments/clock.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { orRefuse, systemctl } from "../step/fragments/systemd.ts";
import { pathsOf } from "../step/effects.ts";
import { sh } from "../step/sh.ts";

const Server = z
  .string()
  .max(253)
  .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$|^[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*$/, "must be a name or an address");

/** The file of servers that kcore writes for each service, beside the service's own configuration. */
const files = {
  timesyncd: "/etc/systemd/timesyncd.conf.d/60-kcore.conf",
  chrony: "/etc/chrony/sources.d/kcore.sources",
};

/**
 * ```yaml
 * clock.synchronized: { servers: [ntp1.example.org, ntp2.example.org] }
 * ```
 * A time service, chrony if it is installed, else systemd-timesyncd, runs now and at every boot. The service asks these
 * servers (chrony also the servers of its own configuration), and must report the clock as synchronized within `wait`.
 * A second running time service is refused. A container has its host's clock.
 */
export const clockSynchronized = defineModule({
  name: "clock.synchronized",
  summary: "Keeps a time service running, and waits until the clock is synchronized.",
  alsoKnownAs: ["ntp", "chrony", "timesyncd"],
  args: z.strictObject({
    servers: z
      .array(Server)
      .min(1, "name a server, or leave servers out")
      .optional()
      .describe("NTP servers; else those of the service's own configuration."),
    service: z
      .enum(["auto", "timesyncd", "chrony"])
      .default("auto")
      .describe("The service; auto: chrony where it is installed, else systemd-timesyncd."),
    wait: Duration.default(60).describe("How long to wait until the clock is synchronized; 0: not at all."),
  }),
  refusals: ["CLOCK_UNSYNCHRONIZED", "SERVICE_FAILED", "TIME_SERVICE_CONFLICT", "TOOL_MISSING", ...fileRefusals],
  step: ({ servers, service: wanted, wait }) => {
    const readState = readTimeServices(wanted);
    const seconds = Math.ceil(wait);
    const texts = {
      timesyncd: blobOf(`# made by kcore\n[Time]\nNTP=\nNTP=${(servers ?? []).join(" ")}\n`),
      chrony: blobOf(`# made by kcore\n${(servers ?? []).map((server) => `server ${server} iburst\n`).join("")}`),
    };
    const chooseFile = sh`if [ $service = chrony ]; then file=${files.chrony}; else file=${files.timesyncd}; fi`;
    const synchronized = sh`synchronized() {
  if [ $service = chrony ]; then ${saysSynchronized.chrony}; else ${saysSynchronized.timesyncd}; fi
}`;
    const serverList = servers?.join(" ");
    const paths = serverList === undefined ? [] : Object.values(files);
    const names = ["chrony.service", "systemd-timesyncd.service"];
    const services = names.map((name) => ({ is: "service", name }) as const);
    return {
      effects: {
        writes: [
          ...services,
          ...paths.flatMap((path) => [{ is: "path", path } as const, { is: "parents", path } as const]),
        ],
        reads: [...services, ...pathsOf(paths), { is: "packages" }, { is: "system" }],
      },
      want: {
        active: "active",
        enabled: "enabled",
        ...(serverList === undefined ? {} : { servers: serverList }),
        ...(seconds === 0 ? {} : { synchronized: "yes" }),
      },
      probe: sh`${readState}
fact active "$active"
fact enabled "$enabled"
${
  serverList === undefined
    ? sh``
    : sh`${chooseFile}
set -- $(sed -n -e 's/^NTP=//p' -e 's/^server \([^ ]*\).*/\1/p' "$file" 2>/dev/null)
[ $# -gt 0 ] || set -- none
fact servers "$*"`
}
${
  seconds === 0
    ? sh``
    : sh`${synchronized}
if synchronized; then fact synchronized yes; else fact synchronized no; fi`
}`,
      guard: sh`${readState}
[ -n "$unit" ] || unsure || refuse TOOL_MISSING ${`no time service is on this node (package ${wanted === "chrony" ? "chrony" : "systemd-timesyncd"})`}
[ -z "$others" ] || unsure || refuse TIME_SERVICE_CONFLICT "\${others# }runs beside \${unit:-systemd-timesyncd}: two set the clock against each other"
${
  serverList === undefined
    ? sh``
    : sh`${chooseFile}
guard_file "$file"`
}`,
      keep: sh`${readState}
${chooseFile}
keep_path "$file"
keep_unit "$unit" restart`,
      ...(serverList === undefined
        ? {}
        : {
            foresee: sh`${readState}
${chooseFile}
foresee_place "$file" 8 1 root root`,
          }),
      apply: sh`${readState}
how=start
${
  serverList === undefined
    ? sh``
    : sh`${chooseFile}
if [ "$(had servers)" != ${serverList} ]; then
  how=restart
  # chrony reads the folder that its package made.
  if [ $service = chrony ]; then text=${texts.chrony} make=0; else text=${texts.timesyncd} make=1; fi
  parent_of "$file" $make
  put_file "$text" "$file" 0644 root root || exit 1
fi`
}
[ "$enabled" = enabled ] || systemctl enable -- "$unit" || exit 1
[ "$active:$how" = active:start ] || systemctl "$how" -- "$unit" ${orRefuse(sh`"$unit"`, "SERVICE_FAILED", sh`"$unit did not start"`)}
systemctl -q is-active -- "$unit" || refuse SERVICE_FAILED "$unit does not run: a condition of the unit does not hold, as in a container, whose clock is its host's"
${
  seconds === 0
    ? sh``
    : sh`${synchronized}
remaining=${seconds}
until synchronized; do
  [ "$remaining" -gt 0 ] || refuse CLOCK_UNSYNCHRONIZED ${`the clock was not synchronized within ${seconds} s`}"$K_NL$(if [ $service = chrony ]; then chronyc -n sources; else timedatectl timesync-status; fi 2>&1)"
  sleep 1
  remaining=$((remaining - 1))
done`
}`,
      tools: [systemctl],
      timeout: 180 + seconds,
    };
  },
});
