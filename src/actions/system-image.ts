import { isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { debianImage, imageFromFile, cachedImage } from "#system/debian-image.ts";

const PackageName = z.string().regex(/^[a-z0-9][a-z0-9.+-]*$/, "must be a package's name");

const args = z.strictObject({
  file: z.string().default("").describe("An existing image: a tar compressed by gzip; relative to the project."),
  suite: z
    .string()
    .regex(/^[a-z][a-z0-9-]*$/, "must be the name of a release")
    .default("bookworm")
    .describe("The Debian release."),
  mirror: z
    .union([z.literal(""), z.url({ protocol: /^https?$/ })])
    .default("")
    .describe("Where Debian comes from; empty: where this machine's apt gets it."),
  kernel: PackageName.default("linux-image-amd64").describe("The kernel's package."),
  packages: z.array(PackageName).default([]).describe("More packages, such as firmware."),
  encrypted: z.boolean().default(false).describe("Adds the packages that unlock an encrypted root at boot."),
});

const unlockPackages = ["cryptsetup-initramfs", "dropbear-initramfs"];

/**
 * The operating system that `os.installed` puts on a machine's own disk: made by debootstrap on this machine, once for all nodes, or an
 * operator's file.
 */
export const systemImage = defineAction({
  name: "system.image",
  summary: "Makes the image of Debian that machines get on their own disks; kept for thirty days.",
  outputs: ["image"],
  bastionNames: ["file", "mirror"],
  args,
  run: build,
  plan: async (given, context) => {
    if (given.file !== "" || (await cachedImage(debianOf(given), cacheOf(context)))) return build(given, context);
    context.note(`would make an image of Debian ${given.suite} (some minutes, once)`);
    return "unknown";
  },
  endsAtStop: true,
});

type ImageArgs = z.output<typeof args>;

function cacheOf({ home }: ActionContext): string {
  return join(home, "cache", "system");
}

function debianOf({ suite, mirror, kernel, packages, encrypted }: ImageArgs) {
  return { suite, mirror, kernel, packages: encrypted ? [...packages, ...unlockPackages] : packages };
}

async function build(given: ImageArgs, context: ActionContext): Promise<ActionResult> {
  const { project, note, signal } = context;
  const { file } = given;
  const image =
    file === ""
      ? await debianImage(debianOf(given), { cache: cacheOf(context), note, signal })
      : await imageFromFile(isAbsolute(file) ? file : resolve(project, file));
  return { changed: false, outputs: { image } };
}
