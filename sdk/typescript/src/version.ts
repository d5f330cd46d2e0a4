/** The version of the package, as the User-Agent tells it. */
export const VERSION = "0.1.0";
