#include <string.h>
void add_vectors(double *v1, double *v2, int size, double *result) {
    for(int i = 0; i < size; ++i)
        result[i] = v1[i] + v2[i];
}
void mul_vector_number(double *v1, double num, int size, double *result) {
    for(int i = 0; i < size; ++i)
        result[i] = v1[i] * num;
}
void score(double * input, double * output) {
    double var0[10];
    double var1[10];
    double var2[10];
    double var3[10];
    double var4[10];
    double var5[10];
    double var6[10];
    double var7[10];
    double var8[10];
    double var9[10];
    double var10[10];
    if (input[43] <= 2.5) {
        if (input[26] <= 1.5) {
            if (input[62] <= 10.5) {
                if (input[6] <= 1.5) {
                    if (input[46] <= 3.5) {
                        if (input[19] <= 11.5) {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var10, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[10] <= 2.0) {
                        memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var10, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[38] <= 2.0) {
                    if (input[35] <= 3.0) {
                        if (input[3] <= 13.0) {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                }
            }
        } else {
            if (input[42] <= 8.5) {
                if (input[61] <= 2.5) {
                    if (input[50] <= 0.5) {
                        if (input[25] <= 5.5) {
                            if (input[51] <= 5.5) {
                                if (input[30] <= 0.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.09090909090909091, 0.0, 0.0, 0.0, 0.0, 0.9090909090909091}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[54] <= 1.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8888888888888888, 0.0, 0.1111111111111111}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[18] <= 15.5) {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[46] <= 4.5) {
                            if (input[13] <= 14.5) {
                                if (input[29] <= 15.5) {
                                    memcpy(var10, (double[]){0.021739130434782608, 0.0, 0.0, 0.0, 0.0, 0.9782608695652174, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[28] <= 9.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[29] <= 6.5) {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[19] <= 13.5) {
                        if (input[5] <= 6.5) {
                            if (input[21] <= 10.5) {
                                if (input[45] <= 6.5) {
                                    memcpy(var10, (double[]){0.125, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.375}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.84, 0.04, 0.0, 0.0, 0.0, 0.0, 0.12}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[3] <= 9.5) {
                                    memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.012987012987012988, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.987012987012987}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[30] <= 0.5) {
                                if (input[59] <= 11.5) {
                                    memcpy(var10, (double[]){0.0, 0.3684210526315789, 0.0, 0.2631578947368421, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3684210526315789}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.047619047619047616, 0.0, 0.9523809523809523, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[18] <= 3.0) {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.021739130434782608, 0.0, 0.021739130434782608, 0.0, 0.0, 0.021739130434782608, 0.0, 0.0, 0.0, 0.9347826086956522}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[58] <= 8.0) {
                            if (input[10] <= 12.5) {
                                if (input[4] <= 14.0) {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.75, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[2] <= 9.5) {
                                memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[52] <= 9.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[20] <= 6.5) {
                    if (input[36] <= 0.5) {
                        memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[26] <= 7.5) {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[36] <= 5.5) {
                        if (input[20] <= 14.5) {
                            memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[36] <= 1.0) {
                                memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                    }
                }
            }
        }
    } else {
        if (input[58] <= 5.5) {
            if (input[54] <= 4.5) {
                if (input[10] <= 6.5) {
                    if (input[12] <= 15.5) {
                        if (input[6] <= 0.5) {
                            if (input[3] <= 15.5) {
                                if (input[26] <= 2.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.008849557522123894, 0.0, 0.0, 0.9911504424778761, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[2] <= 3.5) {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[60] <= 11.0) {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[61] <= 0.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[59] <= 4.5) {
                            if (input[41] <= 0.5) {
                                if (input[60] <= 13.5) {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[33] <= 2.5) {
                                    memcpy(var10, (double[]){0.0, 0.16666666666666666, 0.8333333333333334, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[28] <= 5.5) {
                                memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[42] <= 14.5) {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.8, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[25] <= 3.5) {
                        if (input[28] <= 13.5) {
                            if (input[53] <= 1.0) {
                                if (input[60] <= 9.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.6666666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[27] <= 7.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.8333333333333334, 0.0, 0.0, 0.0, 0.0, 0.0, 0.16666666666666666, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.14285714285714285, 0.0, 0.07142857142857142, 0.0, 0.0, 0.0, 0.0, 0.7857142857142857, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[60] <= 5.0) {
                                if (input[27] <= 10.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[51] <= 15.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[36] <= 4.5) {
                            if (input[38] <= 2.0) {
                                if (input[49] <= 1.5) {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[50] <= 7.5) {
                                if (input[12] <= 3.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.14285714285714288, 0.0, 0.0, 0.28571428571428575, 0.14285714285714288, 0.0, 0.14285714285714288, 0.07142857142857144, 0.2142857142857143}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[11] <= 15.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.5714285714285714, 0.0, 0.0, 0.0, 0.0, 0.42857142857142855, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[20] <= 3.5) {
                    if (input[10] <= 14.5) {
                        if (input[35] <= 1.0) {
                            memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[21] <= 6.0) {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[12] <= 12.0) {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[27] <= 8.0) {
                        if (input[36] <= 5.0) {
                            memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[12] <= 15.0) {
                            if (input[55] <= 4.0) {
                                if (input[28] <= 8.5) {
                                    memcpy(var10, (double[]){0.42857142857142855, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5714285714285714, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.10526315789473684, 0.0, 0.8947368421052632, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[17] <= 6.5) {
                                memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[30] <= 0.5) {
                if (input[60] <= 7.5) {
                    if (input[20] <= 1.5) {
                        memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[27] <= 10.0) {
                            if (input[43] <= 9.0) {
                                memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[50] <= 9.0) {
                                if (input[10] <= 13.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.2}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[51] <= 12.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[26] <= 7.5) {
                        if (input[6] <= 2.0) {
                            if (input[19] <= 14.5) {
                                if (input[3] <= 11.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.897196261682243, 0.028037383177570093, 0.0, 0.0, 0.0, 0.0, 0.07476635514018691, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[55] <= 2.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[19] <= 15.5) {
                            if (input[25] <= 6.5) {
                                if (input[22] <= 0.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.10526315789473684, 0.0, 0.0, 0.3684210526315789, 0.2631578947368421, 0.0, 0.21052631578947367, 0.05263157894736842}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8666666666666667, 0.13333333333333333}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[28] <= 5.5) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[36] <= 7.0) {
                                memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[38] <= 0.5) {
                    if (input[13] <= 12.0) {
                        if (input[53] <= 1.5) {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[21] <= 12.5) {
                            memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[28] <= 14.5) {
                                memcpy(var10, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var10, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[18] <= 12.0) {
                        memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[35] <= 3.5) {
                            memcpy(var10, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[44] <= 1.5) {
                                memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[44] <= 9.0) {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var10, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    double var11[10];
    if (input[34] <= 0.5) {
        if (input[19] <= 11.5) {
            if (input[51] <= 13.5) {
                if (input[30] <= 1.5) {
                    if (input[19] <= 5.5) {
                        if (input[46] <= 5.5) {
                            if (input[60] <= 3.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[45] <= 6.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.8571428571428572, 0.0, 0.0, 0.0, 0.0, 0.10714285714285715, 0.03571428571428572}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[25] <= 2.5) {
                                if (input[58] <= 1.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[38] <= 1.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[61] <= 2.0) {
                            if (input[21] <= 7.0) {
                                if (input[38] <= 6.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[50] <= 6.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[20] <= 14.0) {
                                if (input[5] <= 2.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.4, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.4}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[11] <= 5.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.07142857142857142, 0.0, 0.9285714285714286, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[46] <= 1.5) {
                        if (input[58] <= 7.5) {
                            if (input[50] <= 4.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[50] <= 12.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[26] <= 2.5) {
                                memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[45] <= 13.5) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            if (input[17] <= 5.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[52] <= 5.5) {
                    if (input[37] <= 4.0) {
                        memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[29] <= 15.0) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[22] <= 2.5) {
                        if (input[60] <= 5.5) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[5] <= 11.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[19] <= 1.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[50] <= 13.0) {
                            if (input[15] <= 2.5) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[44] <= 2.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[53] <= 14.5) {
                if (input[20] <= 5.5) {
                    if (input[13] <= 2.0) {
                        memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[38] <= 0.5) {
                        if (input[10] <= 9.5) {
                            memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[29] <= 1.5) {
                                if (input[51] <= 13.0) {
                                    memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[10] <= 12.5) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[46] <= 5.5) {
                    if (input[58] <= 5.5) {
                        memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                }
            }
        }
    } else {
        if (input[36] <= 0.5) {
            if (input[5] <= 9.0) {
                if (input[42] <= 2.0) {
                    if (input[54] <= 4.5) {
                        memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[21] <= 1.0) {
                        if (input[54] <= 2.5) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[18] <= 11.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[20] <= 5.5) {
                            memcpy(var11, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[21] <= 7.5) {
                                if (input[61] <= 6.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var11, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[42] <= 5.5) {
                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                } else {
                    if (input[30] <= 3.0) {
                        if (input[4] <= 14.5) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var11, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            }
        } else {
            if (input[38] <= 0.5) {
                if (input[58] <= 8.5) {
                    if (input[12] <= 15.5) {
                        if (input[21] <= 1.0) {
                            if (input[46] <= 2.0) {
                                if (input[6] <= 1.5) {
                                    memcpy(var11, (double[]){0.0, 0.5945945945945946, 0.02702702702702703, 0.0, 0.08108108108108109, 0.16216216216216217, 0.08108108108108109, 0.0, 0.05405405405405406, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[42] <= 8.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.6666666666666666, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[35] <= 11.5) {
                                if (input[43] <= 1.0) {
                                    memcpy(var11, (double[]){0.0, 0.4285714285714286, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.09523809523809525, 0.4761904761904762}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.09523809523809523, 0.0, 0.19047619047619047, 0.0, 0.0, 0.38095238095238093, 0.2857142857142857, 0.047619047619047616}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[50] <= 3.0) {
                                    memcpy(var11, (double[]){0.0, 0.16666666666666669, 0.16666666666666669, 0.0, 0.33333333333333337, 0.0, 0.0, 0.25000000000000006, 0.08333333333333334, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.014925373134328358, 0.0, 0.9850746268656716, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[17] <= 3.5) {
                            if (input[2] <= 0.5) {
                                memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[52] <= 8.0) {
                                    memcpy(var11, (double[]){0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.9210526315789473, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.07894736842105263, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[26] <= 13.5) {
                                memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[35] <= 11.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.16666666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8333333333333334, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[42] <= 4.5) {
                        if (input[25] <= 1.5) {
                            if (input[10] <= 14.5) {
                                if (input[26] <= 6.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[29] <= 9.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[22] <= 0.5) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[59] <= 8.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[61] <= 8.5) {
                            if (input[44] <= 4.5) {
                                if (input[50] <= 10.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.8, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[21] <= 2.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.07692307692307693, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02564102564102564, 0.8974358974358975, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[37] <= 1.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[26] <= 9.5) {
                    if (input[61] <= 2.5) {
                        if (input[41] <= 8.5) {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[13] <= 11.0) {
                            if (input[58] <= 2.5) {
                                if (input[11] <= 9.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[42] <= 5.0) {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[58] <= 0.5) {
                        if (input[53] <= 15.0) {
                            if (input[44] <= 6.5) {
                                if (input[51] <= 6.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.16666666666666666, 0.0, 0.0, 0.0, 0.0, 0.8333333333333334}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[12] <= 0.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.9516129032258065, 0.0, 0.016129032258064516, 0.008064516129032258, 0.0, 0.024193548387096774}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[50] <= 4.5) {
                                memcpy(var11, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[19] <= 2.5) {
                            if (input[30] <= 0.5) {
                                if (input[27] <= 5.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[60] <= 1.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.04878048780487805, 0.07317073170731707, 0.8780487804878049}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[25] <= 7.5) {
                                if (input[29] <= 13.5) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.028169014084507043, 0.04225352112676056, 0.8873239436619719, 0.014084507042253521, 0.0, 0.028169014084507043}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.1111111111111111, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1111111111111111, 0.0, 0.0, 0.7777777777777778}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[53] <= 3.0) {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var11, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 0.1}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    add_vectors(var10, var11, 10, var9);
    double var12[10];
    if (input[21] <= 1.5) {
        if (input[61] <= 8.5) {
            if (input[4] <= 4.5) {
                if (input[61] <= 2.5) {
                    if (input[27] <= 7.0) {
                        memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[28] <= 2.0) {
                        memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[6] <= 0.5) {
                    if (input[43] <= 4.5) {
                        if (input[5] <= 1.0) {
                            if (input[35] <= 8.0) {
                                if (input[11] <= 10.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[36] <= 0.5) {
                                memcpy(var12, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[15] <= 3.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.9473684210526315, 0.05263157894736842, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[46] <= 0.5) {
                            if (input[33] <= 2.0) {
                                if (input[27] <= 13.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.4, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.9285714285714286, 0.0, 0.0, 0.0, 0.07142857142857142, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[51] <= 15.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[44] <= 5.5) {
                                if (input[60] <= 13.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[27] <= 1.5) {
                        if (input[50] <= 12.0) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var12, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            }
        } else {
            if (input[52] <= 12.5) {
                if (input[34] <= 9.5) {
                    if (input[38] <= 0.5) {
                        if (input[46] <= 3.0) {
                            if (input[37] <= 0.5) {
                                if (input[25] <= 4.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.8888888888888888, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1111111111111111, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[13] <= 0.5) {
                                    memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[10] <= 14.0) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[26] <= 5.5) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[62] <= 8.0) {
                                if (input[35] <= 8.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[35] <= 10.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[61] <= 9.5) {
                        if (input[34] <= 14.0) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[5] <= 13.0) {
                            if (input[25] <= 11.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[44] <= 7.5) {
                    if (input[46] <= 6.0) {
                        memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[19] <= 9.5) {
                        memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[36] <= 6.0) {
                            if (input[60] <= 13.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[27] <= 12.0) {
                                if (input[2] <= 0.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        }
    } else {
        if (input[61] <= 0.5) {
            if (input[38] <= 0.5) {
                if (input[51] <= 13.5) {
                    if (input[27] <= 12.5) {
                        if (input[37] <= 1.0) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[7] <= 13.5) {
                                if (input[13] <= 2.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.1875, 0.0, 0.0, 0.0625, 0.0, 0.0, 0.0, 0.625, 0.0, 0.125}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[20] <= 2.5) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[58] <= 13.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[57] <= 0.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[35] <= 15.0) {
                        if (input[17] <= 5.0) {
                            if (input[3] <= 15.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[19] <= 14.0) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[5] <= 8.5) {
                    if (input[10] <= 10.5) {
                        if (input[34] <= 9.5) {
                            if (input[60] <= 5.0) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[33] <= 1.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[22] <= 0.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.9230769230769231, 0.0, 0.0, 0.07692307692307693, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[28] <= 3.5) {
                            memcpy(var12, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[12] <= 7.5) {
                                if (input[17] <= 1.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[3] <= 5.5) {
                        if (input[3] <= 2.0) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            if (input[13] <= 11.0) {
                                memcpy(var12, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[43] <= 0.5) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        } else {
            if (input[30] <= 2.5) {
                if (input[10] <= 5.5) {
                    if (input[38] <= 5.5) {
                        if (input[27] <= 8.5) {
                            if (input[17] <= 5.5) {
                                if (input[44] <= 13.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.4, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.13333333333333333, 0.13333333333333333}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.20000000000000004, 0.0, 0.0, 0.7000000000000001, 0.0, 0.0, 0.0, 0.10000000000000002, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[44] <= 12.5) {
                                if (input[20] <= 12.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8571428571428571, 0.14285714285714285}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.8571428571428571, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.14285714285714285, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[36] <= 3.5) {
                        if (input[12] <= 8.5) {
                            if (input[37] <= 14.5) {
                                if (input[53] <= 4.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.625, 0.0, 0.125, 0.0, 0.0, 0.0, 0.25}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[42] <= 9.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[62] <= 3.5) {
                                    memcpy(var12, (double[]){0.6666666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[34] <= 3.5) {
                            if (input[43] <= 1.5) {
                                if (input[26] <= 7.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.027777777777777776, 0.9629629629629629, 0.0, 0.0, 0.0, 0.0, 0.0, 0.009259259259259259}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.4285714285714286, 0.0, 0.14285714285714288, 0.0, 0.14285714285714288, 0.0, 0.0, 0.0, 0.28571428571428575}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[37] <= 8.5) {
                                    memcpy(var12, (double[]){0.0, 0.02564102564102564, 0.8461538461538461, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1282051282051282, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.2, 0.13333333333333333, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[46] <= 6.5) {
                                if (input[57] <= 2.5) {
                                    memcpy(var12, (double[]){0.0, 0.12222222222222222, 0.022222222222222223, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7888888888888889, 0.06666666666666667}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[53] <= 15.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[42] <= 4.5) {
                    if (input[34] <= 15.5) {
                        if (input[44] <= 10.5) {
                            if (input[6] <= 2.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[53] <= 11.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.6, 0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[14] <= 4.0) {
                                memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[30] <= 3.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[36] <= 3.5) {
                            memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[21] <= 9.0) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[61] <= 11.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[58] <= 0.5) {
                        if (input[29] <= 12.5) {
                            if (input[34] <= 15.0) {
                                memcpy(var12, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[20] <= 7.5) {
                                if (input[28] <= 10.5) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[44] <= 7.0) {
                                    memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var12, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[36] <= 7.0) {
                            memcpy(var12, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[5] <= 11.5) {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var12, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        }
    }
    add_vectors(var9, var12, 10, var8);
    double var13[10];
    if (input[34] <= 11.5) {
        if (input[38] <= 0.5) {
            if (input[26] <= 7.5) {
                if (input[27] <= 12.5) {
                    if (input[62] <= 2.5) {
                        if (input[54] <= 7.5) {
                            if (input[42] <= 0.5) {
                                if (input[45] <= 4.5) {
                                    memcpy(var13, (double[]){0.0, 0.3333333333333333, 0.6666666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.96, 0.0, 0.0, 0.0, 0.0, 0.0, 0.04}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[53] <= 1.0) {
                                    memcpy(var13, (double[]){0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.04166666666666667, 0.0, 0.6666666666666667, 0.16666666666666669, 0.0, 0.04166666666666667, 0.0, 0.0, 0.08333333333333334, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[2] <= 5.5) {
                            if (input[27] <= 10.0) {
                                if (input[42] <= 3.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.18181818181818182, 0.8181818181818182, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[3] <= 13.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.3333333333333333, 0.6666666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[18] <= 6.5) {
                        if (input[43] <= 12.0) {
                            if (input[55] <= 0.5) {
                                if (input[44] <= 1.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[20] <= 6.0) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[50] <= 8.5) {
                            if (input[61] <= 1.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[57] <= 1.5) {
                                if (input[14] <= 9.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[28] <= 7.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[52] <= 9.5) {
                    if (input[60] <= 6.5) {
                        if (input[20] <= 1.5) {
                            if (input[7] <= 3.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[44] <= 10.0) {
                                if (input[12] <= 3.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[43] <= 1.0) {
                            if (input[53] <= 8.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[21] <= 5.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.2857142857142857, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7142857142857143}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[59] <= 7.0) {
                                if (input[10] <= 4.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[63] <= 4.0) {
                                    memcpy(var13, (double[]){0.0, 0.02631578947368421, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9736842105263158, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[43] <= 1.5) {
                        if (input[21] <= 7.0) {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[2] <= 0.5) {
                                if (input[35] <= 7.5) {
                                    memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[42] <= 5.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[19] <= 11.0) {
                            if (input[28] <= 4.5) {
                                if (input[6] <= 13.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[26] <= 15.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.26315789473684215, 0.0, 0.0, 0.10526315789473685, 0.0, 0.0, 0.5263157894736843, 0.10526315789473685}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[2] <= 12.0) {
                                memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[60] <= 8.5) {
                if (input[36] <= 13.0) {
                    if (input[13] <= 8.5) {
                        if (input[53] <= 4.0) {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[34] <= 4.5) {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[38] <= 1.5) {
                        if (input[5] <= 8.5) {
                            if (input[29] <= 13.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[60] <= 7.5) {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[11] <= 14.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[30] <= 0.5) {
                    if (input[43] <= 7.0) {
                        if (input[21] <= 1.5) {
                            if (input[26] <= 12.5) {
                                if (input[20] <= 4.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[20] <= 10.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[34] <= 9.0) {
                                if (input[62] <= 7.5) {
                                    memcpy(var13, (double[]){0.0, 0.010869565217391304, 0.0, 0.9021739130434783, 0.0, 0.021739130434782608, 0.0, 0.0, 0.0, 0.06521739130434782}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.17647058823529413, 0.0, 0.35294117647058826, 0.0, 0.17647058823529413, 0.0, 0.0, 0.0, 0.29411764705882354}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[29] <= 0.5) {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[2] <= 0.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[21] <= 12.5) {
                        if (input[33] <= 2.5) {
                            if (input[20] <= 14.5) {
                                if (input[17] <= 3.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.18181818181818182, 0.0, 0.0, 0.2727272727272727, 0.0, 0.5454545454545454}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.09090909090909091, 0.0, 0.6363636363636364, 0.0, 0.0, 0.0, 0.2727272727272727}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[28] <= 4.0) {
                                if (input[17] <= 0.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[45] <= 10.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[20] <= 2.5) {
                            if (input[28] <= 8.0) {
                                memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[36] <= 8.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[10] <= 3.5) {
                                if (input[12] <= 13.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[33] <= 2.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.03260869565217391, 0.0, 0.0, 0.0, 0.0, 0.0, 0.967391304347826}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    } else {
        if (input[58] <= 0.5) {
            if (input[50] <= 2.5) {
                if (input[13] <= 7.5) {
                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                } else {
                    if (input[53] <= 8.5) {
                        if (input[53] <= 4.0) {
                            if (input[5] <= 9.0) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[18] <= 6.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[14] <= 10.0) {
                            memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[41] <= 7.5) {
                    if (input[61] <= 6.5) {
                        if (input[18] <= 12.5) {
                            memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[22] <= 0.5) {
                            if (input[21] <= 8.5) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[30] <= 2.5) {
                                    memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[51] <= 10.0) {
                                memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[26] <= 4.0) {
                        memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            }
        } else {
            if (input[45] <= 2.5) {
                if (input[12] <= 15.5) {
                    if (input[38] <= 0.5) {
                        if (input[6] <= 1.5) {
                            if (input[27] <= 11.0) {
                                if (input[41] <= 1.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0, 0.5, 0.25, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[13] <= 2.0) {
                                    memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[61] <= 3.0) {
                            if (input[18] <= 15.0) {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[19] <= 10.5) {
                        memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[36] <= 0.5) {
                    if (input[25] <= 0.5) {
                        memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[42] <= 9.0) {
                            memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[5] <= 4.5) {
                        if (input[34] <= 13.5) {
                            if (input[17] <= 3.5) {
                                if (input[51] <= 15.0) {
                                    memcpy(var13, (double[]){0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.6, 0.2, 0.0, 0.1}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[44] <= 13.5) {
                                if (input[61] <= 2.5) {
                                    memcpy(var13, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9887640449438202, 0.0, 0.0, 0.011235955056179775}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[29] <= 4.0) {
                                    memcpy(var13, (double[]){0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.7, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[20] <= 15.5) {
                            if (input[22] <= 0.5) {
                                if (input[5] <= 10.5) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.38461538461538464, 0.38461538461538464, 0.0, 0.07692307692307693, 0.15384615384615385}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[60] <= 9.0) {
                                    memcpy(var13, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var13, (double[]){0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var13, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        }
    }
    add_vectors(var8, var13, 10, var7);
    double var14[10];
    if (input[33] <= 3.5) {
        if (input[60] <= 2.5) {
            if (input[26] <= 14.5) {
                if (input[36] <= 12.5) {
                    if (input[59] <= 12.5) {
                        if (input[50] <= 7.5) {
                            if (input[44] <= 8.0) {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[11] <= 15.0) {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[35] <= 1.0) {
                        memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[27] <= 4.5) {
                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                } else {
                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            }
        } else {
            if (input[30] <= 0.5) {
                if (input[43] <= 1.5) {
                    if (input[6] <= 2.5) {
                        if (input[26] <= 3.5) {
                            if (input[19] <= 13.5) {
                                if (input[3] <= 7.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.017391304347826087, 0.9652173913043478, 0.0, 0.0, 0.0, 0.0, 0.0, 0.017391304347826087}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var14, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[22] <= 3.0) {
                                if (input[12] <= 13.5) {
                                    memcpy(var14, (double[]){0.0, 0.045454545454545456, 0.022727272727272728, 0.09090909090909091, 0.0, 0.4772727272727273, 0.0, 0.0, 0.09090909090909091, 0.2727272727272727}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.5, 0.0, 0.2777777777777778, 0.0, 0.16666666666666666, 0.0, 0.0, 0.0, 0.05555555555555555}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[20] <= 4.5) {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[35] <= 9.0) {
                                if (input[26] <= 2.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.0, 0.0, 0.0, 0.25}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[54] <= 0.5) {
                        if (input[12] <= 15.5) {
                            if (input[49] <= 3.5) {
                                if (input[42] <= 4.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.02564102564102564, 0.07692307692307693, 0.0, 0.717948717948718, 0.0, 0.10256410256410256, 0.02564102564102564, 0.05128205128205128}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.14814814814814814, 0.0, 0.0, 0.0, 0.0, 0.037037037037037035, 0.037037037037037035, 0.7777777777777778, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[35] <= 11.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.75, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[2] <= 8.0) {
                                if (input[10] <= 14.5) {
                                    memcpy(var14, (double[]){0.0, 0.9534883720930233, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.046511627906976744, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.2222222222222222, 0.0, 0.0, 0.7777777777777778, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[14] <= 1.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.5714285714285714, 0.0, 0.0, 0.42857142857142855, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[20] <= 3.5) {
                            if (input[54] <= 8.5) {
                                if (input[21] <= 4.5) {
                                    memcpy(var14, (double[]){0.0, 0.4444444444444444, 0.0, 0.0, 0.0, 0.1111111111111111, 0.4444444444444444, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[21] <= 7.0) {
                                    memcpy(var14, (double[]){0.0, 0.02127659574468085, 0.0, 0.0, 0.0, 0.0, 0.9787234042553191, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[52] <= 4.5) {
                                if (input[2] <= 11.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.03125, 0.0, 0.0, 0.0, 0.0, 0.0, 0.96875, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[45] <= 7.5) {
                                    memcpy(var14, (double[]){0.0, 0.07627118644067797, 0.9152542372881356, 0.0, 0.0, 0.0, 0.00847457627118644, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.3414634146341463, 0.12195121951219509, 0.1463414634146341, 0.02439024390243902, 0.0, 0.0, 0.0, 0.2926829268292682, 0.07317073170731705}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[26] <= 4.5) {
                    if (input[36] <= 6.5) {
                        if (input[27] <= 4.0) {
                            if (input[30] <= 4.5) {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[60] <= 10.0) {
                            if (input[37] <= 7.5) {
                                if (input[4] <= 14.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[50] <= 10.0) {
                                if (input[52] <= 4.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.4117647058823529, 0.5294117647058824, 0.0, 0.0, 0.0, 0.058823529411764705, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[13] <= 15.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[33] <= 1.5) {
                        if (input[42] <= 4.5) {
                            if (input[28] <= 2.5) {
                                if (input[34] <= 2.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[6] <= 4.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.02040816326530612, 0.0, 0.0, 0.0, 0.9795918367346939}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.16666666666666666, 0.0, 0.0, 0.0, 0.16666666666666666, 0.0, 0.08333333333333333, 0.0, 0.5833333333333334}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[36] <= 11.0) {
                                if (input[18] <= 12.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.4, 0.2, 0.0, 0.4, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[63] <= 0.5) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[28] <= 3.5) {
                            memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[11] <= 13.0) {
                                if (input[10] <= 8.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        }
    } else {
        if (input[3] <= 8.5) {
            if (input[61] <= 9.5) {
                if (input[2] <= 1.0) {
                    if (input[11] <= 5.5) {
                        if (input[42] <= 6.0) {
                            memcpy(var14, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[18] <= 15.5) {
                            if (input[36] <= 0.5) {
                                if (input[46] <= 0.5) {
                                    memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[11] <= 14.5) {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[36] <= 7.5) {
                        memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[4] <= 12.0) {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[20] <= 10.0) {
                    if (input[29] <= 4.5) {
                        if (input[30] <= 3.5) {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[13] <= 5.0) {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    memcpy(var14, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            }
        } else {
            if (input[30] <= 2.5) {
                if (input[17] <= 4.5) {
                    if (input[61] <= 6.5) {
                        if (input[37] <= 2.5) {
                            if (input[58] <= 9.5) {
                                memcpy(var14, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[51] <= 6.5) {
                                if (input[58] <= 1.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[53] <= 8.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.6875, 0.0, 0.0, 0.3125, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[42] <= 10.0) {
                            memcpy(var14, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[37] <= 13.5) {
                        memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[3] <= 15.5) {
                            if (input[11] <= 13.0) {
                                memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[60] <= 6.5) {
                    if (input[17] <= 0.5) {
                        memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[28] <= 6.5) {
                            memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[58] <= 0.5) {
                        if (input[27] <= 12.5) {
                            if (input[5] <= 0.5) {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[13] <= 4.0) {
                                    memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[28] <= 8.5) {
                            memcpy(var14, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[6] <= 1.0) {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var14, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        }
    }
    add_vectors(var7, var14, 10, var6);
    double var15[10];
    if (input[21] <= 1.5) {
        if (input[10] <= 13.5) {
            if (input[54] <= 1.5) {
                if (input[3] <= 11.5) {
                    if (input[14] <= 10.0) {
                        if (input[35] <= 12.5) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[46] <= 0.5) {
                                if (input[61] <= 4.0) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[13] <= 1.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[33] <= 1.5) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[26] <= 9.0) {
                        if (input[59] <= 10.0) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[28] <= 2.5) {
                            if (input[52] <= 8.5) {
                                memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[42] <= 11.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[60] <= 15.5) {
                                    memcpy(var15, (double[]){0.0, 0.6666666666666666, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[2] <= 4.5) {
                    if (input[46] <= 1.5) {
                        if (input[18] <= 9.5) {
                            if (input[52] <= 10.5) {
                                if (input[37] <= 4.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[37] <= 2.5) {
                        if (input[19] <= 11.5) {
                            memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[34] <= 14.0) {
                            if (input[18] <= 5.5) {
                                if (input[52] <= 10.0) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        } else {
            if (input[4] <= 7.5) {
                if (input[38] <= 0.5) {
                    if (input[4] <= 0.5) {
                        if (input[9] <= 7.0) {
                            memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[50] <= 8.5) {
                        memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[62] <= 1.5) {
                    if (input[41] <= 4.0) {
                        if (input[13] <= 2.5) {
                            if (input[37] <= 13.5) {
                                if (input[22] <= 1.0) {
                                    memcpy(var15, (double[]){0.0, 0.14285714285714285, 0.07142857142857142, 0.0, 0.0, 0.7857142857142857, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[11] <= 6.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[60] <= 14.5) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[4] <= 11.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.9259259259259259, 0.0, 0.0, 0.07407407407407407, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[13] <= 7.0) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[54] <= 10.0) {
                        memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[34] <= 5.5) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        }
    } else {
        if (input[44] <= 5.5) {
            if (input[30] <= 1.5) {
                if (input[42] <= 1.5) {
                    if (input[52] <= 0.5) {
                        if (input[29] <= 5.0) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[18] <= 4.0) {
                                if (input[1] <= 0.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[19] <= 6.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.6666666666666666}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[34] <= 0.5) {
                            if (input[5] <= 0.5) {
                                if (input[9] <= 4.0) {
                                    memcpy(var15, (double[]){0.0, 0.14285714285714285, 0.0, 0.0, 0.0, 0.14285714285714285, 0.0, 0.0, 0.0, 0.7142857142857143}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[51] <= 12.0) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.98, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.7142857142857143, 0.0, 0.0, 0.0, 0.0, 0.2857142857142857, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[25] <= 1.0) {
                                if (input[50] <= 3.0) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[4] <= 5.5) {
                                    memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.1111111111111111, 0.0, 0.0, 0.0, 0.8888888888888888}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[2] <= 8.5) {
                        if (input[35] <= 8.5) {
                            if (input[29] <= 14.0) {
                                if (input[52] <= 2.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[51] <= 13.5) {
                                if (input[19] <= 0.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.3076923076923077, 0.0, 0.0, 0.0, 0.0, 0.23076923076923078, 0.46153846153846156, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[13] <= 14.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[43] <= 6.0) {
                            if (input[52] <= 3.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[58] <= 9.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[60] <= 6.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[29] <= 13.5) {
                    if (input[41] <= 0.5) {
                        if (input[35] <= 11.0) {
                            if (input[20] <= 4.0) {
                                memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[10] <= 14.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[46] <= 0.5) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[13] <= 8.0) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[25] <= 0.5) {
                            if (input[20] <= 8.5) {
                                memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[2] <= 6.5) {
                        if (input[36] <= 0.5) {
                            if (input[51] <= 12.0) {
                                if (input[34] <= 2.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[11] <= 15.0) {
                                    memcpy(var15, (double[]){0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[14] <= 3.5) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[2] <= 2.0) {
                                    memcpy(var15, (double[]){0.0, 0.08333333333333333, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9166666666666666}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[45] <= 1.0) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[21] <= 6.5) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[60] <= 4.5) {
                if (input[26] <= 11.5) {
                    if (input[29] <= 4.5) {
                        if (input[12] <= 6.0) {
                            if (input[45] <= 3.5) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[21] <= 8.5) {
                                    memcpy(var15, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[42] <= 15.5) {
                            if (input[43] <= 2.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[11] <= 6.0) {
                                memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[34] <= 8.0) {
                        if (input[28] <= 15.5) {
                            if (input[9] <= 3.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[43] <= 5.0) {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[34] <= 12.5) {
                    if (input[10] <= 7.5) {
                        if (input[33] <= 5.5) {
                            if (input[52] <= 6.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[12] <= 13.5) {
                                    memcpy(var15, (double[]){0.0, 0.04761904761904762, 0.14285714285714288, 0.1904761904761905, 0.14285714285714288, 0.0, 0.0, 0.1904761904761905, 0.09523809523809525, 0.1904761904761905}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.9607843137254902, 0.029411764705882353, 0.0, 0.0, 0.0, 0.0, 0.0, 0.00980392156862745, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[20] <= 11.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[50] <= 6.5) {
                            if (input[60] <= 7.5) {
                                if (input[18] <= 0.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[26] <= 5.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.6176470588235294, 0.38235294117647056, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.047619047619047616, 0.09523809523809523, 0.0, 0.0, 0.0, 0.0, 0.14285714285714285, 0.2857142857142857, 0.42857142857142855}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[27] <= 6.0) {
                                if (input[51] <= 15.0) {
                                    memcpy(var15, (double[]){0.25, 0.0, 0.0, 0.375, 0.0, 0.0, 0.0, 0.0, 0.375, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[19] <= 15.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.07575757575757576, 0.0, 0.030303030303030304, 0.0, 0.0, 0.8636363636363636, 0.030303030303030304}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[45] <= 0.5) {
                        if (input[30] <= 4.5) {
                            if (input[51] <= 13.0) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[26] <= 6.0) {
                            if (input[35] <= 14.5) {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[53] <= 6.5) {
                                if (input[43] <= 0.5) {
                                    memcpy(var15, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.0, 0.014705882352941178, 0.0, 0.0, 0.9705882352941178, 0.0, 0.0, 0.014705882352941178, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[13] <= 7.5) {
                                    memcpy(var15, (double[]){0.0, 0.09090909090909091, 0.0, 0.0, 0.8636363636363636, 0.0, 0.0, 0.0, 0.045454545454545456, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var15, (double[]){0.375, 0.4166666666666667, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.16666666666666666, 0.041666666666666664}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    add_vectors(var6, var15, 10, var5);
    double var16[10];
    if (input[30] <= 1.5) {
        if (input[54] <= 1.5) {
            if (input[58] <= 2.5) {
                if (input[3] <= 11.5) {
                    if (input[27] <= 8.5) {
                        if (input[33] <= 3.5) {
                            if (input[17] <= 4.5) {
                                if (input[58] <= 1.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.3333333333333333, 0.3333333333333333, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[2] <= 1.0) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[29] <= 1.5) {
                            if (input[58] <= 0.5) {
                                if (input[46] <= 0.5) {
                                    memcpy(var16, (double[]){0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[21] <= 4.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.0, 0.25, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[10] <= 5.5) {
                                if (input[42] <= 11.0) {
                                    memcpy(var16, (double[]){0.0, 0.9545454545454546, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.045454545454545456}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.5714285714285714, 0.0, 0.0, 0.42857142857142855, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[14] <= 3.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.16666666666666666, 0.0, 0.0, 0.5, 0.3333333333333333}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[17] <= 0.5) {
                        if (input[28] <= 7.5) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[38] <= 3.0) {
                                if (input[20] <= 14.5) {
                                    memcpy(var16, (double[]){0.0, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[35] <= 13.0) {
                            if (input[34] <= 6.0) {
                                if (input[13] <= 14.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[29] <= 0.5) {
                                memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[21] <= 2.5) {
                    if (input[61] <= 8.5) {
                        if (input[20] <= 9.5) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[19] <= 11.0) {
                                if (input[61] <= 0.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[51] <= 13.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[41] <= 2.0) {
                            memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[52] <= 9.5) {
                        if (input[36] <= 13.5) {
                            if (input[52] <= 4.5) {
                                if (input[45] <= 10.0) {
                                    memcpy(var16, (double[]){0.0, 0.16666666666666669, 0.16666666666666669, 0.0, 0.0, 0.0, 0.0, 0.16666666666666669, 0.33333333333333337, 0.16666666666666669}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[50] <= 10.0) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[2] <= 5.0) {
                                    memcpy(var16, (double[]){0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.25, 0.5, 0.0, 0.0, 0.0, 0.25, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[43] <= 15.5) {
                            if (input[27] <= 12.5) {
                                if (input[45] <= 8.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.28571428571428575, 0.07142857142857144, 0.0, 0.07142857142857144, 0.0, 0.14285714285714288, 0.14285714285714288, 0.28571428571428575}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.8095238095238095, 0.047619047619047616, 0.14285714285714285, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[50] <= 6.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.022222222222222223, 0.0, 0.0, 0.9777777777777777, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[4] <= 15.5) {
                                if (input[51] <= 14.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.9333333333333333, 0.06666666666666667, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[28] <= 5.5) {
                if (input[42] <= 8.0) {
                    if (input[26] <= 6.0) {
                        memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[37] <= 5.0) {
                            memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[18] <= 6.5) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[60] <= 15.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[17] <= 4.5) {
                        if (input[57] <= 2.0) {
                            if (input[37] <= 7.5) {
                                if (input[14] <= 0.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[34] <= 10.0) {
                            memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[4] <= 8.5) {
                    if (input[27] <= 12.5) {
                        if (input[46] <= 4.5) {
                            if (input[6] <= 1.0) {
                                if (input[52] <= 3.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[50] <= 8.0) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[29] <= 0.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.75, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[45] <= 11.5) {
                            if (input[11] <= 15.5) {
                                if (input[42] <= 7.0) {
                                    memcpy(var16, (double[]){0.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.6}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[52] <= 6.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[33] <= 3.0) {
                                if (input[36] <= 11.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.375, 0.0, 0.375, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[46] <= 0.5) {
                        if (input[14] <= 0.5) {
                            if (input[12] <= 9.0) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[5] <= 14.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[18] <= 2.0) {
                                if (input[28] <= 11.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[21] <= 0.5) {
                            if (input[34] <= 14.5) {
                                if (input[20] <= 7.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.7241379310344828, 0.27586206896551724, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[42] <= 1.5) {
                                if (input[26] <= 6.5) {
                                    memcpy(var16, (double[]){0.0, 0.021505376344086023, 0.0, 0.956989247311828, 0.0, 0.0, 0.0, 0.0, 0.0, 0.021505376344086023}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.030303030303030304, 0.0, 0.06060606060606061, 0.0, 0.0, 0.0, 0.0, 0.36363636363636365, 0.5454545454545454}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[49] <= 0.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.2765957446808511, 0.0425531914893617, 0.0, 0.0, 0.0, 0.0, 0.6170212765957447, 0.06382978723404255}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.9230769230769231, 0.0, 0.0, 0.0, 0.0, 0.07692307692307693, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    } else {
        if (input[43] <= 3.5) {
            if (input[33] <= 1.5) {
                if (input[3] <= 0.5) {
                    if (input[36] <= 2.5) {
                        memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[63] <= 2.0) {
                        if (input[21] <= 8.5) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[58] <= 12.5) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[30] <= 4.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[5] <= 11.5) {
                    if (input[27] <= 8.5) {
                        memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[28] <= 5.5) {
                            memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[12] <= 11.0) {
                                if (input[21] <= 1.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[22] <= 5.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[2] <= 1.5) {
                        if (input[26] <= 15.5) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[13] <= 7.0) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[41] <= 1.5) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[42] <= 12.5) {
                if (input[25] <= 3.5) {
                    if (input[26] <= 11.5) {
                        if (input[60] <= 11.0) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[7] <= 1.0) {
                                if (input[22] <= 10.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[60] <= 7.0) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[59] <= 8.5) {
                                if (input[20] <= 11.5) {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[2] <= 0.5) {
                                    memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.6}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            } else {
                if (input[41] <= 5.5) {
                    if (input[36] <= 6.0) {
                        if (input[10] <= 4.0) {
                            memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[27] <= 11.0) {
                            if (input[28] <= 9.5) {
                                if (input[11] <= 12.0) {
                                    memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[3] <= 15.5) {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[21] <= 15.5) {
                        memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[3] <= 7.0) {
                            memcpy(var16, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[38] <= 8.5) {
                                memcpy(var16, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var16, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        }
    }
    add_vectors(var5, var16, 10, var4);
    double var17[10];
    if (input[19] <= 13.5) {
        if (input[53] <= 0.5) {
            if (input[58] <= 0.5) {
                if (input[34] <= 8.5) {
                    if (input[45] <= 2.0) {
                        if (input[18] <= 13.5) {
                            if (input[51] <= 13.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[17] <= 9.0) {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[5] <= 11.5) {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[28] <= 7.0) {
                    if (input[36] <= 9.0) {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[5] <= 3.5) {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[17] <= 2.0) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[37] <= 0.5) {
                        if (input[42] <= 3.5) {
                            if (input[52] <= 4.0) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[12] <= 6.0) {
                            if (input[18] <= 9.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[37] <= 7.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.5714285714285714, 0.0, 0.0, 0.0, 0.42857142857142855}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[63] <= 0.5) {
                                if (input[20] <= 2.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9375, 0.0, 0.0625}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.011363636363636364, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9886363636363636, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            }
        } else {
            if (input[25] <= 1.5) {
                if (input[34] <= 5.5) {
                    if (input[46] <= 1.5) {
                        if (input[14] <= 0.5) {
                            if (input[45] <= 8.5) {
                                if (input[22] <= 1.5) {
                                    memcpy(var17, (double[]){0.0, 0.034883720930232565, 0.930232558139535, 0.0, 0.0, 0.0, 0.0, 0.0, 0.034883720930232565, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.2727272727272727, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7272727272727273, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[3] <= 14.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.08333333333333333, 0.0, 0.0, 0.9166666666666666, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[49] <= 1.5) {
                                if (input[10] <= 14.5) {
                                    memcpy(var17, (double[]){0.0, 0.03846153846153847, 0.07692307692307694, 0.8846153846153847, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.375, 0.125, 0.0, 0.0, 0.0, 0.0, 0.25, 0.25}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[43] <= 10.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.5555555555555556, 0.0, 0.0, 0.2222222222222222, 0.2222222222222222}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[45] <= 12.5) {
                            if (input[18] <= 11.5) {
                                if (input[43] <= 6.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.9047619047619048, 0.0, 0.0, 0.0, 0.0, 0.0, 0.09523809523809523}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.8235294117647058, 0.0, 0.0, 0.0, 0.0, 0.0, 0.17647058823529413, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[44] <= 0.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.024390243902439025, 0.04878048780487805, 0.0, 0.04878048780487805, 0.0, 0.0, 0.024390243902439025, 0.8536585365853658}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.28571428571428575, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4285714285714286, 0.28571428571428575}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[29] <= 13.5) {
                                if (input[53] <= 4.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.9436619718309859, 0.0, 0.0, 0.0, 0.0, 0.056338028169014086, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[1] <= 0.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.07692307692307693, 0.9230769230769231}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[54] <= 9.5) {
                        if (input[20] <= 15.5) {
                            if (input[37] <= 12.5) {
                                if (input[21] <= 1.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.25, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.046511627906976744, 0.0, 0.046511627906976744, 0.0, 0.0, 0.0, 0.0, 0.046511627906976744, 0.813953488372093, 0.046511627906976744}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[59] <= 3.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.1, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.5, 0.0, 0.3}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[10] <= 6.0) {
                                memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[36] <= 10.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[29] <= 9.5) {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[41] <= 2.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[21] <= 5.5) {
                    if (input[13] <= 0.5) {
                        if (input[58] <= 0.5) {
                            if (input[52] <= 7.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[9] <= 0.5) {
                                if (input[60] <= 10.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[45] <= 3.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.7, 0.1, 0.0, 0.0, 0.2}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[45] <= 0.5) {
                            if (input[35] <= 2.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[27] <= 1.5) {
                                if (input[11] <= 13.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[59] <= 13.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.08, 0.0, 0.48, 0.4, 0.0, 0.04, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.022727272727272728, 0.0, 0.0, 0.0, 0.0, 0.9772727272727273, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[27] <= 2.5) {
                        if (input[49] <= 4.0) {
                            if (input[26] <= 6.5) {
                                if (input[50] <= 2.5) {
                                    memcpy(var17, (double[]){0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.8333333333333334, 0.0, 0.0, 0.16666666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[33] <= 1.5) {
                                    memcpy(var17, (double[]){0.125, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.625}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.968421052631579, 0.0, 0.0, 0.0, 0.021052631578947368, 0.0, 0.0, 0.0, 0.0, 0.010526315789473684}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[5] <= 3.5) {
                            if (input[28] <= 0.5) {
                                memcpy(var17, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[3] <= 9.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.8, 0.2, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.06451612903225806, 0.9354838709677419}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[30] <= 1.5) {
                                if (input[26] <= 10.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.36363636363636365, 0.45454545454545453, 0.0, 0.0, 0.0, 0.0, 0.0, 0.18181818181818182}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.11764705882352941, 0.0, 0.0, 0.0, 0.0, 0.11764705882352941, 0.0, 0.6764705882352942, 0.08823529411764706}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[28] <= 10.5) {
                                    memcpy(var17, (double[]){0.2222222222222222, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.0, 0.0, 0.1111111111111111}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.06896551724137931, 0.0, 0.0, 0.0, 0.10344827586206896, 0.0, 0.034482758620689655, 0.06896551724137931, 0.7241379310344828}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    } else {
        if (input[20] <= 8.5) {
            if (input[27] <= 14.5) {
                if (input[17] <= 1.5) {
                    if (input[33] <= 5.5) {
                        if (input[46] <= 4.0) {
                            if (input[12] <= 7.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[33] <= 2.0) {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var17, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[10] <= 4.5) {
                    if (input[52] <= 14.0) {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[46] <= 6.0) {
                        if (input[63] <= 2.5) {
                            if (input[61] <= 6.0) {
                                if (input[52] <= 7.5) {
                                    memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[34] <= 3.0) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            }
        } else {
            if (input[33] <= 3.5) {
                if (input[10] <= 13.5) {
                    if (input[26] <= 6.5) {
                        if (input[36] <= 8.5) {
                            if (input[52] <= 11.0) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[12] <= 15.5) {
                                if (input[22] <= 0.5) {
                                    memcpy(var17, (double[]){0.0, 0.7142857142857143, 0.14285714285714285, 0.0, 0.14285714285714285, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[50] <= 10.5) {
                                    memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[11] <= 14.5) {
                            if (input[37] <= 15.0) {
                                if (input[10] <= 2.0) {
                                    memcpy(var17, (double[]){0.0, 0.8888888888888888, 0.0, 0.0, 0.1111111111111111, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[60] <= 9.5) {
                        memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[61] <= 7.0) {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[20] <= 13.5) {
                                memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[50] <= 7.5) {
                                    memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var17, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[50] <= 8.5) {
                    if (input[61] <= 13.0) {
                        if (input[42] <= 2.0) {
                            if (input[53] <= 1.0) {
                                memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[5] <= 2.0) {
                        memcpy(var17, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[60] <= 10.0) {
                            memcpy(var17, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var17, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        }
    }
    add_vectors(var4, var17, 10, var3);
    double var18[10];
    if (input[36] <= 0.5) {
        if (input[58] <= 7.5) {
            if (input[41] <= 0.5) {
                if (input[37] <= 7.5) {
                    if (input[42] <= 11.0) {
                        if (input[37] <= 2.0) {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var18, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[52] <= 5.5) {
                        if (input[42] <= 6.0) {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[27] <= 6.5) {
                            memcpy(var18, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[34] <= 4.5) {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                }
            } else {
                if (input[49] <= 6.0) {
                    if (input[42] <= 3.5) {
                        memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    } else {
                        if (input[21] <= 5.5) {
                            if (input[26] <= 14.5) {
                                if (input[22] <= 3.0) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[28] <= 5.5) {
                                memcpy(var18, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            }
        } else {
            if (input[28] <= 0.5) {
                if (input[57] <= 1.5) {
                    memcpy(var18, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                } else {
                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            } else {
                if (input[13] <= 8.0) {
                    if (input[57] <= 3.0) {
                        if (input[21] <= 7.5) {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[2] <= 11.0) {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        memcpy(var18, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[6] <= 1.0) {
                        memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    } else {
                        if (input[9] <= 6.0) {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        }
    } else {
        if (input[60] <= 2.5) {
            if (input[10] <= 15.5) {
                if (input[26] <= 14.5) {
                    if (input[4] <= 2.5) {
                        memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        if (input[36] <= 12.5) {
                            if (input[29] <= 4.0) {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    if (input[10] <= 13.5) {
                        if (input[43] <= 6.5) {
                            if (input[45] <= 2.0) {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[57] <= 0.5) {
                    if (input[35] <= 13.0) {
                        if (input[13] <= 12.0) {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[13] <= 6.0) {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                } else {
                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            }
        } else {
            if (input[10] <= 11.5) {
                if (input[44] <= 12.5) {
                    if (input[21] <= 1.0) {
                        if (input[20] <= 2.5) {
                            if (input[42] <= 8.5) {
                                if (input[53] <= 3.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[41] <= 8.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[2] <= 0.5) {
                                if (input[27] <= 15.0) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[37] <= 8.0) {
                                    memcpy(var18, (double[]){0.0, 0.7777777777777778, 0.2222222222222222, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[26] <= 0.5) {
                            if (input[10] <= 3.5) {
                                if (input[60] <= 9.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.5714285714285715, 0.0, 0.0, 0.0, 0.0, 0.0, 0.14285714285714288, 0.28571428571428575, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[42] <= 15.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.058823529411764705, 0.9411764705882353, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[20] <= 14.5) {
                                if (input[30] <= 1.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.043478260869565216, 0.13043478260869565, 0.0, 0.0, 0.0, 0.0, 0.7391304347826086, 0.08695652173913043}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.02702702702702703, 0.05405405405405406, 0.0, 0.0, 0.32432432432432434, 0.0, 0.0, 0.08108108108108109, 0.0, 0.5135135135135135}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[42] <= 1.0) {
                                    memcpy(var18, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[25] <= 0.5) {
                        if (input[60] <= 7.5) {
                            if (input[44] <= 13.5) {
                                if (input[19] <= 1.0) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[30] <= 1.5) {
                                    memcpy(var18, (double[]){0.0, 0.6666666666666666, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[41] <= 6.5) {
                                if (input[27] <= 12.0) {
                                    memcpy(var18, (double[]){0.0, 0.2, 0.26666666666666666, 0.0, 0.06666666666666667, 0.0, 0.3333333333333333, 0.13333333333333333, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[61] <= 4.5) {
                            if (input[58] <= 0.5) {
                                if (input[45] <= 5.5) {
                                    memcpy(var18, (double[]){0.0, 0.045454545454545456, 0.0, 0.0, 0.7272727272727273, 0.0, 0.0, 0.045454545454545456, 0.0, 0.18181818181818182}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[45] <= 3.5) {
                                    memcpy(var18, (double[]){0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.8333333333333334, 0.0, 0.0, 0.16666666666666666, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[5] <= 4.5) {
                                if (input[29] <= 5.0) {
                                    memcpy(var18, (double[]){0.0, 0.16666666666666666, 0.0, 0.0, 0.0, 0.0, 0.8333333333333334, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[50] <= 1.5) {
                                    memcpy(var18, (double[]){0.0, 0.9428571428571428, 0.0, 0.0, 0.05714285714285714, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.3333333333333333, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[42] <= 4.5) {
                    if (input[27] <= 3.5) {
                        if (input[5] <= 4.5) {
                            if (input[10] <= 13.5) {
                                if (input[35] <= 13.0) {
                                    memcpy(var18, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[12] <= 12.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.8888888888888888, 0.1111111111111111, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[44] <= 2.0) {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[20] <= 1.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.42857142857142855, 0.0, 0.0, 0.0, 0.0, 0.5714285714285714, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.46153846153846156, 0.5384615384615384, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[5] <= 7.5) {
                            if (input[43] <= 6.5) {
                                if (input[38] <= 3.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.4, 0.0, 0.17142857142857143, 0.0, 0.0, 0.0, 0.42857142857142855}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.07352941176470588, 0.0, 0.058823529411764705, 0.0, 0.0, 0.0, 0.8676470588235294}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[4] <= 0.5) {
                                    memcpy(var18, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.7105263157894738, 0.0, 0.0, 0.052631578947368425, 0.0, 0.0, 0.2368421052631579, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[22] <= 0.5) {
                                if (input[18] <= 9.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.08888888888888889, 0.0, 0.8666666666666667, 0.0, 0.0, 0.044444444444444446, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[14] <= 13.0) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.45454545454545453, 0.0, 0.0, 0.0, 0.045454545454545456, 0.045454545454545456, 0.45454545454545453}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[62] <= 2.5) {
                        if (input[20] <= 15.5) {
                            if (input[35] <= 9.5) {
                                if (input[41] <= 2.0) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.2, 0.0, 0.4, 0.2, 0.0, 0.0, 0.0, 0.2}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.6, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[33] <= 3.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.03296703296703297, 0.01098901098901099, 0.0, 0.0, 0.0, 0.07692307692307693, 0.8791208791208791, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.13333333333333333, 0.6, 0.26666666666666666, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[10] <= 14.5) {
                                memcpy(var18, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[3] <= 13.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.6923076923076923, 0.07692307692307693, 0.0, 0.0, 0.0, 0.0, 0.23076923076923078, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[46] <= 3.0) {
                            if (input[58] <= 6.0) {
                                if (input[51] <= 9.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var18, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[21] <= 3.0) {
                                memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[37] <= 14.5) {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var18, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    add_vectors(var3, var18, 10, var2);
    double var19[10];
    if (input[30] <= 1.5) {
        if (input[20] <= 3.5) {
            if (input[42] <= 9.5) {
                if (input[37] <= 15.5) {
                    if (input[26] <= 15.5) {
                        if (input[5] <= 4.0) {
                            if (input[61] <= 15.0) {
                                if (input[27] <= 13.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.0, 0.0, 0.3333333333333333}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[53] <= 5.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[28] <= 13.0) {
                                if (input[6] <= 1.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.05555555555555555, 0.0, 0.0, 0.5, 0.0, 0.0, 0.4444444444444444, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.03225806451612903, 0.0, 0.8709677419354839, 0.0, 0.06451612903225806, 0.03225806451612903, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[53] <= 4.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.1111111111111111, 0.0, 0.0, 0.5555555555555556, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[20] <= 0.5) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[59] <= 10.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[11] <= 6.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[36] <= 14.5) {
                        if (input[54] <= 0.5) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[41] <= 9.5) {
                    if (input[58] <= 5.5) {
                        if (input[18] <= 6.5) {
                            if (input[54] <= 3.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[62] <= 13.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[26] <= 8.0) {
                                memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[22] <= 1.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9923664122137404, 0.0, 0.007633587786259542, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[43] <= 6.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[19] <= 2.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[12] <= 5.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                }
            }
        } else {
            if (input[38] <= 0.5) {
                if (input[9] <= 0.5) {
                    if (input[42] <= 10.5) {
                        if (input[35] <= 1.0) {
                            if (input[3] <= 15.0) {
                                if (input[6] <= 2.0) {
                                    memcpy(var19, (double[]){0.0, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[63] <= 2.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.25, 0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[19] <= 7.5) {
                                if (input[37] <= 2.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.3, 0.2, 0.0, 0.0, 0.0, 0.2, 0.0, 0.3}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[10] <= 5.5) {
                                    memcpy(var19, (double[]){0.0, 0.9875, 0.0125, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.7083333333333334, 0.0, 0.041666666666666664, 0.0, 0.041666666666666664, 0.0, 0.0, 0.20833333333333334, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[45] <= 3.5) {
                            if (input[35] <= 14.5) {
                                if (input[49] <= 1.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[20] <= 9.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[28] <= 11.5) {
                                if (input[28] <= 2.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[11] <= 3.0) {
                                    memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[57] <= 0.5) {
                        if (input[34] <= 3.0) {
                            if (input[5] <= 8.5) {
                                if (input[10] <= 14.5) {
                                    memcpy(var19, (double[]){0.0, 0.15384615384615385, 0.15384615384615385, 0.46153846153846156, 0.0, 0.0, 0.0, 0.0, 0.23076923076923078, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.028985507246376812, 0.8985507246376812, 0.028985507246376812, 0.0, 0.014492753623188406, 0.0, 0.0, 0.028985507246376812, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[52] <= 11.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.75, 0.0, 0.0, 0.0, 0.125, 0.0, 0.125}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.375, 0.0, 0.0, 0.625, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[1] <= 0.5) {
                                if (input[50] <= 3.0) {
                                    memcpy(var19, (double[]){0.0, 0.4, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.2}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[58] <= 10.5) {
                                    memcpy(var19, (double[]){0.0, 0.4, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.2, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[45] <= 6.5) {
                            if (input[50] <= 4.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[51] <= 1.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.9791666666666666, 0.0, 0.0, 0.0, 0.0, 0.0, 0.020833333333333332, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[10] <= 14.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[26] <= 8.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.2, 0.4, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            } else {
                if (input[26] <= 5.5) {
                    if (input[45] <= 8.5) {
                        if (input[53] <= 2.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[55] <= 1.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[4] <= 7.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            if (input[37] <= 14.5) {
                                if (input[60] <= 4.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[19] <= 9.5) {
                        if (input[43] <= 6.5) {
                            if (input[4] <= 11.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[26] <= 11.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.875, 0.0, 0.0, 0.0, 0.0, 0.0, 0.125}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.6666666666666666}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[52] <= 8.5) {
                                if (input[13] <= 14.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[61] <= 9.0) {
                            if (input[36] <= 8.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[36] <= 7.5) {
                                if (input[38] <= 5.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[6] <= 0.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.8, 0.0, 0.0, 0.1}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                }
            }
        }
    } else {
        if (input[50] <= 8.5) {
            if (input[43] <= 0.5) {
                if (input[33] <= 2.5) {
                    if (input[3] <= 0.5) {
                        if (input[46] <= 0.5) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[21] <= 5.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[44] <= 12.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                if (input[27] <= 8.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    }
                } else {
                    if (input[30] <= 9.0) {
                        if (input[25] <= 2.5) {
                            if (input[3] <= 4.0) {
                                memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[11] <= 11.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                }
            } else {
                if (input[58] <= 0.5) {
                    if (input[60] <= 11.5) {
                        if (input[4] <= 10.5) {
                            if (input[5] <= 5.5) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                if (input[37] <= 11.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[25] <= 2.0) {
                                if (input[4] <= 11.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.3333333333333333, 0.0, 0.0, 0.0, 0.0, 0.6666666666666666, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[33] <= 6.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0, 0.6}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        }
                    } else {
                        if (input[46] <= 5.5) {
                            if (input[7] <= 1.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        } else {
                            if (input[2] <= 1.5) {
                                if (input[61] <= 12.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[18] <= 15.5) {
                        if (input[62] <= 1.0) {
                            if (input[51] <= 7.0) {
                                if (input[13] <= 6.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                if (input[60] <= 9.5) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){0.5, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            }
                        } else {
                            if (input[36] <= 1.5) {
                                memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[53] <= 5.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        } else {
            if (input[27] <= 7.5) {
                if (input[59] <= 7.5) {
                    if (input[5] <= 6.0) {
                        memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    } else {
                        memcpy(var19, (double[]){0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                    }
                } else {
                    if (input[33] <= 1.0) {
                        if (input[36] <= 2.0) {
                            memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                        }
                    } else {
                        if (input[28] <= 9.0) {
                            memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            } else {
                if (input[36] <= 5.5) {
                    if (input[34] <= 10.0) {
                        if (input[46] <= 3.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[21] <= 4.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[41] <= 4.5) {
                            memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[37] <= 13.0) {
                                if (input[21] <= 5.0) {
                                    memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                } else {
                                    memcpy(var19, (double[]){1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                                }
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    }
                } else {
                    if (input[3] <= 14.5) {
                        if (input[18] <= 5.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            if (input[12] <= 3.0) {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}, 10 * sizeof(double));
                            } else {
                                memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, 10 * sizeof(double));
                            }
                        }
                    } else {
                        if (input[53] <= 4.0) {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0}, 10 * sizeof(double));
                        } else {
                            memcpy(var19, (double[]){0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, 10 * sizeof(double));
                        }
                    }
                }
            }
        }
    }
    add_vectors(var2, var19, 10, var1);
    mul_vector_number(var1, 0.1, 10, var0);
    memcpy(output, var0, 10 * sizeof(double));
}
