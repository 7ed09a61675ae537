import { z } from "zod";
import { TlsFiles } from "#api/daemon-config.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";

/** `/etc/kcore/node-agent.yaml`: names and defaults as in the kcore documentation. */
export const AgentConfig = z.object({
  /** Must be the id in the node's certificate; absent: the certificate's id. */
  nodeId: z.string().optional(),
  /** The address of the status server: plain HTTP on loopback, mTLS from outside. */
  listenAddr: z.string().default("[::]:9091"),
  /** A controller's endpoint, tried before `controllers`. */
  controllerAddr: z.string().optional(),
  /** Endpoints of the controllers, `host:port`, in the order in which they are tried. */
  controllers: z.array(z.string()).default([]),
  /** Whether the agent also tries controllers that another controller names, after those of this file. */
  learnControllers: z.boolean().default(false),
  dcId: z.string().default("DC1"),
  labels: z.record(z.string(), z.string()).default({}),
  roles: z.array(z.string()).default([]),
  /** Absent: the machine's host name. */
  hostname: z.string().optional(),
  /** Absent: the machine's own address towards the controller. */
  address: z.string().optional(),
  storage: z
    .object({
      backend: z.string().default("filesystem"),
      filesystemVolumeDir: z.string().default("/var/lib/kcore/volumes"),
      lvm: z.object({ vgName: z.string().optional(), lvPrefix: z.string().optional() }).prefault({}),
      zfs: z.object({ poolName: z.string().optional(), datasetPrefix: z.string().optional() }).prefault({}),
    })
    .prefault({}),
  /** Reported to the controllers: this node takes no part in an overlay network. */
  disableVxlan: z.boolean().default(false),
  tls: TlsFiles("node"),
  renewal: z
    .object({
      /** The certificate is renewed when at most this many days are left. */
      daysLeft: z.number().min(0).max(89).default(30),
    })
    .prefault({}),
  heartbeatIntervalSecs: z.number().positive().max(3600).default(15),
  /** Seconds between two readings of the machine's facts; a change is reported. */
  factsIntervalSecs: z.number().positive().max(86_400).default(300),
  /** The folder of `status.json`, `revoked-keys.json` and `updates/`. */
  stateDir: z.string().default("/var/lib/kcore"),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/** The endpoints of the controllers that a configuration names, in the order in which they are tried. */
export function controllersOf({ controllerAddr, controllers }: AgentConfig): readonly string[] {
  const texts = new Set([...(controllerAddr === undefined ? [] : [controllerAddr]), ...controllers]);
  return [...texts].map((text) => formatEndpoint(parseEndpoint(text)));
}
