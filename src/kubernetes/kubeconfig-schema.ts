import { z } from "zod";
import { PathPart } from "./target.ts";

const Text = z.string().min(1);
const File = Text.nullish();
const namedList = <Fields extends z.ZodRawShape>(fields: Fields) => z.array(z.looseObject({ name: Text, ...fields }));
/** A kubeconfig, as far as kcore reads it. */
export const Kubeconfig = z.looseObject({
  clusters: namedList({
    cluster: z.looseObject({
      server: z.url({ protocol: /^https?$/ }),
      "certificate-authority": File,
      "certificate-authority-data": z
        .string()
        .refine((data) => Buffer.from(data, "base64").toString("latin1").includes("-----BEGIN"), "is no PEM in base64")
        .nullish(),
    }),
  }),
  contexts: namedList({
    context: z.looseObject({ cluster: Text, user: Text.nullish(), namespace: PathPart.nullish() }),
  }).nullish(),
  users: namedList({
    user: z
      .looseObject({
        "client-certificate": File,
        "client-key": File,
        "client-key-data": z.string().nullish(),
        token: z.string().nullish(),
        "token-file": File,
        tokenFile: File,
        password: z.string().nullish(),
        exec: z
          .looseObject({
            command: Text,
            apiVersion: z.string().nullish(),
            env: z.array(z.looseObject({ name: Text, value: z.string() })).nullish(),
            installHint: z.string().nullish(),
          })
          .nullish(),
      })
      .nullish(),
  }).nullish(),
  "current-context": z.string().nullish(),
});
export type Kubeconfig = z.output<typeof Kubeconfig>;
export type KubeconfigUser = NonNullable<NonNullable<Kubeconfig["users"]>[number]["user"]>;

/** Fields of a cluster and of a user that name files. */
export const clusterFiles = ["certificate-authority"] as const;
export const userFiles = ["client-certificate", "client-key", "token-file", "tokenFile"] as const;
