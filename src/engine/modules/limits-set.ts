import { z } from "zod";
import { defineModule, type Step } from "../step/define.ts";
import { absentRefusals, stepOfData, withProbe } from "../step/fragments/files.ts";
import { sh, shLines } from "../step/sh.ts";
import { stepOfFile } from "./file-managed.ts";

/** Items of limits.conf(5). */
const items = [
  "as",
  "chroot",
  "core",
  "cpu",
  "data",
  "fsize",
  "locks",
  "maxlogins",
  "maxsyslogins",
  "memlock",
  "msgqueue",
  "nice",
  "nofile",
  "nonewprivs",
  "nproc",
  "priority",
  "rss",
  "rtprio",
  "sigpending",
  "stack",
] as const;

const Limit = z
  .strictObject({
    domain: z
      .string()
      .regex(
        /^(\*|[%@]?[A-Za-z_][\w.-]{0,31}\$?|%|[@%]?\d*:\d*)$/,
        "must be a user, @group, %group, *, or UIDs such as 1000:",
      )
      .refine((domain) => domain !== ":" && !/^[@%]:$/.test(domain), "must name an id")
      .describe("A user, @group, * for all but root, or a range of ids."),
    type: z.enum(["soft", "hard", "-"]).default("-").describe("soft, hard, or -: both."),
    item: z.enum(items).describe("The limited resource, such as nofile or nproc."),
    value: z
      .union([z.int().min(-20), z.literal("unlimited")])
      .transform(String)
      .describe("The limit, in the item's own unit (KiB, minutes or a count), or unlimited."),
  })
  .meta({ examples: [{ domain: "postgres", type: "-", item: "nofile", value: 65_536 }] });

/**
 * ```yaml
 * limits.set:
 *   name: 60-postgres
 *   limits:
 *     - { domain: postgres, item: nofile, value: 65536 }
 * ```
 * Limits of sessions that begin after the step, in /etc/security/limits.d/NAME.conf (limits.conf(5)). Files are read in
 * the order of their names, and the last one wins. A `nofile` above the kernel's fs.nr_open is refused, because it
 * would prevent every login. PAM's pam_limits, which Debian has for every login, sets the limits; for units of systemd
 * use `LimitNOFILE=` and the like instead.
 */
export const limitsSet = defineModule({
  name: "limits.set",
  summary: "Keeps limits of users' sessions (PAM).",
  alsoKnownAs: ["pam_limits", "ulimit", "limits.conf"],
  args: z
    .strictObject({
      name: z
        .string()
        .regex(/^[A-Za-z0-9][\w.@-]{0,63}$/, "must be a plain file name such as 60-postgres")
        .transform((name) => name.replace(/\.conf$/, ""))
        .describe("The file's name; .conf is added."),
      limits: z.array(Limit).default([]).describe("The limits: domain, type, item and value of each."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the file shall be there."),
    })
    .refine(({ limits, state }) => limits.length > 0 === (state === "present"), "give limits (none with state: absent)")
    .refine(({ limits }) => {
      const keys = limits.flatMap(({ domain, type, item }) =>
        (type === "-" ? ["soft", "hard"] : [type]).map((one) => `${domain} ${one} ${item}`),
      );
      return new Set(keys).size === keys.length;
    }, "limits one thing twice"),
  refusals: ["FILE_IN_THE_WAY", "LIMIT_TOO_HIGH", ...absentRefusals],
  step: ({ name, limits, state }, context) => {
    const path = `/etc/security/limits.d/${name}.conf`;
    if (state === "absent") return stepOfData({ kind: "absent", path, recurse: false });
    const lines = limits.map(({ domain, type, item, value }) => `${domain} ${type} ${item} ${value}\n`);
    const content = `# made by kcore\n${lines.join("")}`;
    return withinKernelLimit(limits, stepOfFile({ path, content, mode: "0644", makeDirs: true }, context));
  },
});

/** The kernel's limit of open files for a process. */
const kernelLimit = "/proc/sys/fs/nr_open";

/**
 * The step, which then refuses a `nofile` above the kernel's limit, even if the file is in order (setrlimit(2), EPERM).
 * For `unlimited` PAM itself uses the kernel's limit.
 */
function withinKernelLimit(limits: readonly z.output<typeof Limit>[], step: Step): Step {
  const files = limits.filter(({ item, value }) => item === "nofile" && value !== "unlimited");
  if (files.length === 0) return step;
  const probe = sh`# Not by the builtin read, which reads byte by byte: the kernel gives this value only to the first read(2).
most=$(cat ${kernelLimit} 2>/dev/null)
${shLines(
  files.map(
    ({ domain, value }) =>
      sh`[ -z "$most" ] || [ "$most" -ge ${value} ] || refuse LIMIT_TOO_HIGH ${`${domain} is to have ${value} open files, with which PAM refuses every login: fs.nr_open of this node is `}"$most (sysctl.set raises it)"`,
  ),
)}`;
  return withProbe(step, probe, [{ is: "path", path: kernelLimit }]);
}
