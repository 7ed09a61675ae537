import { isAbsolute, normalize } from "node:path";
import { z } from "zod";

/** A path relative to the project that stays inside it. */
export const InProject = z
  .string()
  .refine((path) => !isAbsolute(path) && !normalize(path).startsWith(".."), "must stay inside the project");
