import { z } from "zod";
import { TlsFiles } from "#api/daemon-config.ts";

/** `/etc/kcore/controller.yaml`: names and defaults as in the kcore documentation. */
export const ControllerConfig = z.object({
  /** Address and port of the API. */
  listenAddr: z.string().default("0.0.0.0:9090"),
  /** Folder of the controller's state. */
  dbPath: z.string().default("/var/lib/kcore/controller"),
  tls: TlsFiles("controller"),
  replication: z
    .object({
      controllerId: z.string().optional(),
      dcId: z.string().default("DC1"),
      peers: z.array(z.unknown()).optional(),
    })
    .prefault({}),
  /** Whether new nodes wait for `kcore node approve`. */
  requireManualApproval: z.boolean().default(false),
  /** A node without a heartbeat for so long is not ready. */
  staleAfterSecs: z.number().positive().max(86_400).default(90),
  staleCheckIntervalSecs: z.number().positive().max(86_400).default(30),
});
export type ControllerConfig = z.infer<typeof ControllerConfig>;
