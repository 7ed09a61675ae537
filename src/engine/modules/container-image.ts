import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { withRuntime, type ContainerImage } from "../step/fragments/containers.ts";
import type { NodeResource } from "../step/effects.ts";
import { sh } from "../step/sh.ts";

/** A whole name, since Docker, Podman and containerd complete a short name in different ways. */
const reference =
  /^(localhost|[a-z0-9][a-z0-9-]*(\.[a-z0-9-]+)+|[a-z0-9][a-z0-9.-]*:\d{1,5})(:\d{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$/;

/**
 * ```yaml
 * container.image: { name: "docker.io/library/nginx:1.27.3" }
 * ```
 * The image is in Podman, Docker, k3s or containerd (ctr): the first of these that the node has. A name with a digest
 * (`…@sha256:…`) pins the content. A name with a tag is in order as soon as an image of that name is there; to follow a
 * moving tag, give its digest. `archive` loads the image from a file on the node, which file.managed or file.downloaded
 * can bring, without a registry. Podman and Docker do not remove an image that a container uses: then the step fails.
 */
export const containerImage = defineModule({
  name: "container.image",
  summary: "Keeps a container image on the node, or away.",
  alsoKnownAs: ["docker_image", "podman_image", "docker_image.present"],
  args: z
    .strictObject({
      name: z
        .string()
        .max(512)
        .regex(reference, "must be a whole name: host/repository:tag, such as docker.io/library/nginx:1.27.3")
        .refine((name) => /[:@][^/]*$/.test(name), "must have a tag or a digest")
        .describe("The image, with its registry, and a tag or a digest."),
      runtime: z
        .enum(["auto", "podman", "docker", "k3s", "ctr"])
        .default("auto")
        .describe("The container runtime; auto: the first of these that is there."),
      namespace: z
        .string()
        .regex(/^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$/, "must be a namespace of containerd")
        .default("k8s.io")
        .describe("The namespace of ctr and k3s; Kubernetes has k8s.io."),
      socket: AbsolutePath.optional().describe("The socket of containerd, for ctr, where it is not the usual one."),
      pull: z
        .enum(["missing", "never"])
        .default("missing")
        .describe("Whether a registry may be asked for a missing image."),
      archive: AbsolutePath.optional().describe("A file on the node to load the image from, as docker save writes it."),
      state: z.enum(["present", "absent"]).default("present").describe("Whether the image shall be there."),
    })
    .refine(({ archive, state }) => archive === undefined || state === "present", "archive is for state: present"),
  refusals: ["IMAGE_FAILED", "TOOL_MISSING"],
  step: ({ state, archive, pull, ...given }) => {
    const image: ContainerImage = given;
    const { name } = given;
    const digest = /@(sha256:.*)$/.exec(name)?.[1];
    const isWanted = state === "present";
    const archiveResource: readonly NodeResource[] = archive === undefined ? [] : [{ is: "existing", path: archive }];
    const tools = ["podman", "docker", "k3s", "ctr"].map((tool) => ({ is: "program", name: tool }) as const);
    const bring =
      archive !== undefined
        ? sh`load ${archive} >"$K_TMP/output" 2>&1 || failed ${`${archive} cannot be loaded`}`
        : sh`pull >"$K_TMP/output" 2>&1 || failed ${`${name} cannot be pulled`}`;
    return {
      effects: {
        writes: [
          { is: "tree", path: "/var/lib/containers" },
          { is: "tree", path: "/var/lib/docker" },
          { is: "tree", path: "/var/lib/containerd" },
        ],
        reads: [{ is: "system" }, ...archiveResource, ...tools],
      },
      want: isWanted ? { image: "present", ...(digest !== undefined && { digest }) } : { image: "absent" },
      probe: sh`${withRuntime(image)}
fact runtime "$runtime"
answers >"$K_TMP/output" 2>&1 || { ! unsure || exit 1; refuse IMAGE_FAILED "$runtime does not answer$K_NL$(cat "$K_TMP/output")"; }
found=$(digests) || found=none
if [ "$found" = none ]; then fact image absent
else
  fact image present
  ${digest === undefined ? sh`` : sh`case "$K_NL$found$K_NL" in *"$K_NL"${digest}"$K_NL"*) found=${digest} ;; esac`}
  fact digest "\${found%%"$K_NL"*}"
fi`,
      guard:
        isWanted && (archive !== undefined || pull === "never")
          ? archive === undefined
            ? sh`refuse IMAGE_FAILED ${`${name} is not on the node, and pull: never forbids to fetch it`}`
            : sh`unsure || [ -f ${archive} ] || refuse IMAGE_FAILED ${`${archive} is not on the node, or is no file`}`
          : sh`:`,
      apply: sh`${withRuntime(image)}
failed() { refuse IMAGE_FAILED "$1"" ($runtime)$K_NL$(cat "$K_TMP/output")"; }
${
  isWanted
    ? sh`${bring}
digests >/dev/null || failed ${archive === undefined ? `there is no ${name} after it was pulled` : `${archive} brought no ${name}`}`
    : sh`remove >"$K_TMP/output" 2>&1 || failed ${`${name} cannot be removed`}`
}`,
      timeout: 3600,
      stall: 300,
    };
  },
});
