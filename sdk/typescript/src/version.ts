/** The version of the package, which is also part of the User-Agent. */
export const VERSION = "0.1.0";
