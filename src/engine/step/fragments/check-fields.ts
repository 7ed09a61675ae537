import { z } from "zod";
import { AbsolutePath, Duration, ByteSize, UnitName } from "../fields.ts";

const Words = z.union([z.string().transform((word) => [word]), z.array(z.string()).min(1)]);
const UnitNames = z.union([UnitName.transform((name) => [name]), z.array(UnitName).min(1)]);
const Port = z.number().int().min(1).max(65_535);
const Address = z.union([z.ipv4(), z.ipv6()]);
const Host = z.string().regex(/^[A-Za-z0-9_.:][A-Za-z0-9_.:-]{0,252}$/, "must be a host name or an address");
const Version = z.string().regex(/^\d+(\.\d+)*$/, "must be a version such as 5.10, in quotes");

/** Seconds since 1970: a number, or a time as ISO 8601 (`run.time`). */
const Time = z.union([
  z.number().positive().transform(Math.floor),
  z.iso.datetime({ offset: true }).transform((text) => Math.floor(Date.parse(text) / 1000)),
]);

/** The first 16 hex digits of the SHA-256 of a root certificate's base64, without line breaks. */
const RootPrint = z.string().regex(/^[0-9a-f]{16}$/, "must be 16 hexadecimal digits");

const TcpEndpoint = z
  .object({
    host: z.union([Host.transform((host) => [host]), z.array(Host)]).describe("A host name or an address, or a list."),
    port: z.union([Port.transform((port) => [port]), z.array(Port)]).describe("The TCP port, or a list of ports."),
    refused: z
      .boolean()
      .default(false)
      .describe("Whether a refused connection will do: the way is open, and nothing listens there yet."),
  })
  .meta({
    examples: [
      { host: "192.0.2.1", port: 9090 },
      { host: "192.0.2.1", port: [2379, 2380], refused: true },
    ],
  });

/** One check of fact.assert: exactly one of these keys, and optionally `when`. */
export const AssertCheck = z
  .strictObject({
    os: z
      .strictObject({
        id: Words.describe("ID of /etc/os-release: one, or several of which one must fit."),
        version: Words.optional().describe("VERSION_ID, in quotes, one or several."),
      })
      .describe("ID and VERSION_ID of /etc/os-release.")
      .meta({ examples: [{ id: ["debian", "ubuntu"] }, { id: "debian", version: "12" }] }),
    arch: Words.describe("Architecture as uname -m says; amd64, x64 and arm64 are understood."),
    cpus: z.number().int().positive().describe("At least so many processors."),
    memory: ByteSize.describe("At least so much memory, as the kernel counts it."),
    freeSpace: z
      .strictObject({
        path: AbsolutePath.describe("A path on the file system in question; it need not be there yet."),
        min: ByteSize.describe("The space that must be free."),
      })
      .describe("At least so much space free where path is.")
      .meta({ examples: [{ path: "/var/lib", min: "10G" }] }),
    diskCount: z.number().int().positive().describe("At least so many whole disks."),
    command: Words.describe("Programs that are on PATH."),
    clock: z
      .strictObject({
        now: Time.optional().describe(
          "The right time: seconds since 1970, or ISO 8601 such as run.time; else the bastion's.",
        ),
        maxSkew: Duration.default(300).describe("A clock that is further off fails the check."),
        warn: Duration.default(5).describe("A clock that is further off is reported."),
      })
      .describe("The clock is near the bastion's, or near the given now.")
      .meta({ examples: [{ maxSkew: "30s", warn: "5s" }, { now: "2026-01-31T12:00:00Z" }] }),
    timeSync: z.literal(true).describe("The clock is kept by a time service."),
    portFree: z
      .strictObject({
        port: Port.describe("The TCP port."),
        unlessUnit: UnitNames.optional().describe("Units whose listening is fine."),
        unlessOwner: Words.optional().describe("Programs whose listening is fine, by their name."),
      })
      .describe("No other process listens on a TCP port.")
      .meta({
        examples: [
          { port: 9090, unlessUnit: "kcore-controller" },
          { port: 22, unlessOwner: ["sshd", "systemd"] },
        ],
      }),
    route: z
      .strictObject({
        to: z
          .union([Address.transform((address) => [address]), z.array(Address)])
          .describe("An IPv4 or IPv6 address, or a list of them."),
      })
      .describe("There is a route to an address, or to each of a list.")
      .meta({ examples: [{ to: "192.0.2.1" }] }),
    tcp: z
      .union([TcpEndpoint.transform((endpoint) => [endpoint]), z.array(TcpEndpoint)])
      .describe("The node can connect to a TCP port, or to each of a list."),
    root: z.literal(true).describe("Steps run as root, by login or sudo."),
    kernelMin: Version.describe("Kernel at least of this version."),
    packagesAbsent: Words.describe("Packages that are not installed."),
    servicesAbsent: UnitNames.describe("Units that are neither active nor enabled."),
    memberOf: z
      .strictObject({
        cluster: z.string().describe("The cluster's name."),
        root: RootPrint.describe("The cluster's root, as pki.checkPassphrase gives it."),
        leaves: z
          .union([RootPrint, z.literal("")])
          .default("")
          .describe("The root of the cluster that the machine may leave."),
        node: z.string().default("").describe("The node's name in the roster."),
        id: z.string().optional().describe("The node's id; without it any id will do."),
        former: z.array(z.string()).default([]).describe("The node's former ids, under which it was removed."),
        folder: AbsolutePath.default("/etc/kcore/certs").describe("Where the node's certificates lie."),
      })
      .describe("The node is in no other cluster of kcore's.")
      .meta({
        examples: [
          { cluster: "lab", root: "9f2c4e1b77d3a0c5" },
          { cluster: "lab", root: "9f2c4e1b77d3a0c5", leaves: "d9cae0dbdbf078b2", folder: "/etc/kcore/certs" },
          { cluster: "lab", root: "9f2c4e1b77d3a0c5", node: "n2", id: "n2-id", former: ["n1-id"] },
        ],
      }),
    when: z.boolean().describe("The check is left out where this is false."),
  })
  .partial()
  .refine(
    (check) => Object.keys(check).filter((key) => key !== "when").length === 1,
    "give exactly one check in each entry",
  )
  .meta({
    examples: [
      { os: { id: ["debian", "ubuntu"], version: "12" } },
      { arch: "amd64" },
      { cpus: 2 },
      { memory: "2G" },
      { freeSpace: { path: "/var/lib", min: "10G" } },
      { diskCount: 2 },
      { command: ["tar", "gzip"] },
      { clock: { maxSkew: "30s" } },
      { timeSync: true },
      { portFree: { port: 9090, unlessUnit: "kcore-controller" } },
      { route: { to: "192.0.2.1" } },
      { tcp: { host: "192.0.2.1", port: 9090 } },
      { root: true },
      { kernelMin: "5.10" },
      { packagesAbsent: "docker.io" },
      { servicesAbsent: "docker", when: true },
      { memberOf: { cluster: "lab", root: "9f2c4e1b77d3a0c5" } },
    ],
  });
export type AssertCheck = z.output<typeof AssertCheck>;
