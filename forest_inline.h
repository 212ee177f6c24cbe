


    // !!! This file is generated using emlearn !!!

    #include <stdint.h>
    

static inline int32_t forest_tree_0(const int16_t *features, int32_t features_length) {
          if (features[43] < 2) {
              if (features[26] < 1) {
                  if (features[62] < 10) {
                      if (features[6] < 1) {
                          if (features[46] < 3) {
                              if (features[19] < 11) {
                                  return 0;
                              } else {
                                  return 1;
                              }
                          } else {
                              return 0;
                          }
                      } else {
                          if (features[10] < 2) {
                              return 2;
                          } else {
                              return 0;
                          }
                      }
                  } else {
                      if (features[38] < 2) {
                          if (features[35] < 3) {
                              if (features[3] < 13) {
                                  return 0;
                              } else {
                                  return 4;
                              }
                          } else {
                              return 3;
                          }
                      } else {
                          return 1;
                      }
                  }
              } else {
                  if (features[42] < 8) {
                      if (features[61] < 2) {
                          if (features[50] < 0) {
                              if (features[25] < 5) {
                                  if (features[51] < 5) {
                                      if (features[30] < 0) {
                                          return 5;
                                      } else {
                                          return 6;
                                      }
                                  } else {
                                      if (features[54] < 1) {
                                          return 7;
                                      } else {
                                          return 1;
                                      }
                                  }
                              } else {
                                  if (features[18] < 15) {
                                      return 8;
                                  } else {
                                      return 5;
                                  }
                              }
                          } else {
                              if (features[46] < 4) {
                                  if (features[13] < 14) {
                                      if (features[29] < 15) {
                                          return 9;
                                      } else {
                                          return 10;
                                      }
                                  } else {
                                      if (features[28] < 9) {
                                          return 2;
                                      } else {
                                          return 5;
                                      }
                                  }
                              } else {
                                  if (features[29] < 6) {
                                      return 5;
                                  } else {
                                      return 1;
                                  }
                              }
                          }
                      } else {
                          if (features[19] < 13) {
                              if (features[5] < 6) {
                                  if (features[21] < 10) {
                                      if (features[45] < 6) {
                                          return 11;
                                      } else {
                                          return 12;
                                      }
                                  } else {
                                      if (features[3] < 9) {
                                          return 13;
                                      } else {
                                          return 14;
                                      }
                                  }
                              } else {
                                  if (features[30] < 0) {
                                      if (features[59] < 11) {
                                          return 15;
                                      } else {
                                          return 16;
                                      }
                                  } else {
                                      if (features[18] < 3) {
                                          return 3;
                                      } else {
                                          return 17;
                                      }
                                  }
                              }
                          } else {
                              if (features[58] < 8) {
                                  if (features[10] < 12) {
                                      if (features[4] < 14) {
                                          return 3;
                                      } else {
                                          return 18;
                                      }
                                  } else {
                                      return 1;
                                  }
                              } else {
                                  if (features[2] < 9) {
                                      return 3;
                                  } else {
                                      if (features[52] < 9) {
                                          return 1;
                                      } else {
                                          return 5;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[20] < 6) {
                          if (features[36] < 0) {
                              return 13;
                          } else {
                              if (features[26] < 7) {
                                  return 2;
                              } else {
                                  return 19;
                              }
                          }
                      } else {
                          if (features[36] < 5) {
                              if (features[20] < 14) {
                                  return 13;
                              } else {
                                  if (features[36] < 1) {
                                      return 4;
                                  } else {
                                      return 5;
                                  }
                              }
                          } else {
                              return 2;
                          }
                      }
                  }
              }
          } else {
              if (features[58] < 5) {
                  if (features[54] < 4) {
                      if (features[10] < 6) {
                          if (features[12] < 15) {
                              if (features[6] < 0) {
                                  if (features[3] < 15) {
                                      if (features[26] < 2) {
                                          return 4;
                                      } else {
                                          return 20;
                                      }
                                  } else {
                                      if (features[2] < 3) {
                                          return 3;
                                      } else {
                                          return 21;
                                      }
                                  }
                              } else {
                                  if (features[60] < 11) {
                                      return 21;
                                  } else {
                                      if (features[61] < 0) {
                                          return 19;
                                      } else {
                                          return 21;
                                      }
                                  }
                              }
                          } else {
                              if (features[59] < 4) {
                                  if (features[41] < 0) {
                                      if (features[60] < 13) {
                                          return 3;
                                      } else {
                                          return 22;
                                      }
                                  } else {
                                      if (features[33] < 2) {
                                          return 23;
                                      } else {
                                          return 8;
                                      }
                                  }
                              } else {
                                  if (features[28] < 5) {
                                      return 13;
                                  } else {
                                      if (features[42] < 14) {
                                          return 3;
                                      } else {
                                          return 24;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[25] < 3) {
                              if (features[28] < 13) {
                                  if (features[53] < 1) {
                                      if (features[60] < 9) {
                                          return 21;
                                      } else {
                                          return 25;
                                      }
                                  } else {
                                      if (features[27] < 7) {
                                          return 26;
                                      } else {
                                          return 27;
                                      }
                                  }
                              } else {
                                  if (features[60] < 5) {
                                      if (features[27] < 10) {
                                          return 21;
                                      } else {
                                          return 1;
                                      }
                                  } else {
                                      if (features[51] < 15) {
                                          return 2;
                                      } else {
                                          return 28;
                                      }
                                  }
                              }
                          } else {
                              if (features[36] < 4) {
                                  if (features[38] < 2) {
                                      if (features[49] < 1) {
                                          return 3;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      return 13;
                                  }
                              } else {
                                  if (features[50] < 7) {
                                      if (features[12] < 3) {
                                          return 8;
                                      } else {
                                          return 29;
                                      }
                                  } else {
                                      if (features[11] < 15) {
                                          return 2;
                                      } else {
                                          return 30;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[20] < 3) {
                          if (features[10] < 14) {
                              if (features[35] < 1) {
                                  return 13;
                              } else {
                                  if (features[21] < 6) {
                                      return 19;
                                  } else {
                                      return 2;
                                  }
                              }
                          } else {
                              if (features[12] < 12) {
                                  return 2;
                              } else {
                                  return 13;
                              }
                          }
                      } else {
                          if (features[27] < 8) {
                              if (features[36] < 5) {
                                  return 13;
                              } else {
                                  return 4;
                              }
                          } else {
                              if (features[12] < 15) {
                                  if (features[55] < 4) {
                                      if (features[28] < 8) {
                                          return 31;
                                      } else {
                                          return 32;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  if (features[17] < 6) {
                                      return 3;
                                  } else {
                                      return 4;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[30] < 0) {
                      if (features[60] < 7) {
                          if (features[20] < 1) {
                              return 5;
                          } else {
                              if (features[27] < 10) {
                                  if (features[43] < 9) {
                                      return 4;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[50] < 9) {
                                      if (features[10] < 13) {
                                          return 0;
                                      } else {
                                          return 33;
                                      }
                                  } else {
                                      if (features[51] < 12) {
                                          return 2;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[26] < 7) {
                              if (features[6] < 2) {
                                  if (features[19] < 14) {
                                      if (features[3] < 11) {
                                          return 2;
                                      } else {
                                          return 34;
                                      }
                                  } else {
                                      if (features[55] < 2) {
                                          return 35;
                                      } else {
                                          return 3;
                                      }
                                  }
                              } else {
                                  return 5;
                              }
                          } else {
                              if (features[19] < 15) {
                                  if (features[25] < 6) {
                                      if (features[22] < 0) {
                                          return 36;
                                      } else {
                                          return 37;
                                      }
                                  } else {
                                      if (features[28] < 5) {
                                          return 5;
                                      } else {
                                          return 4;
                                      }
                                  }
                              } else {
                                  if (features[36] < 7) {
                                      return 4;
                                  } else {
                                      return 3;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[38] < 0) {
                          if (features[13] < 12) {
                              if (features[53] < 1) {
                                  return 21;
                              } else {
                                  return 2;
                              }
                          } else {
                              if (features[21] < 12) {
                                  return 21;
                              } else {
                                  if (features[28] < 14) {
                                      return 4;
                                  } else {
                                      return 3;
                                  }
                              }
                          }
                      } else {
                          if (features[18] < 12) {
                              return 21;
                          } else {
                              if (features[35] < 3) {
                                  return 13;
                              } else {
                                  if (features[44] < 1) {
                                      return 1;
                                  } else {
                                      if (features[44] < 9) {
                                          return 21;
                                      } else {
                                          return 8;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_1(const int16_t *features, int32_t features_length) {
          if (features[34] < 0) {
              if (features[19] < 11) {
                  if (features[51] < 13) {
                      if (features[30] < 1) {
                          if (features[19] < 5) {
                              if (features[46] < 5) {
                                  if (features[60] < 3) {
                                      return 21;
                                  } else {
                                      if (features[45] < 6) {
                                          return 4;
                                      } else {
                                          return 38;
                                      }
                                  }
                              } else {
                                  if (features[25] < 2) {
                                      if (features[58] < 1) {
                                          return 39;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[38] < 1) {
                                          return 0;
                                      } else {
                                          return 5;
                                      }
                                  }
                              }
                          } else {
                              if (features[61] < 2) {
                                  if (features[21] < 7) {
                                      if (features[38] < 6) {
                                          return 5;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[50] < 6) {
                                          return 21;
                                      } else {
                                          return 2;
                                      }
                                  }
                              } else {
                                  if (features[20] < 14) {
                                      if (features[5] < 2) {
                                          return 40;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[11] < 5) {
                                          return 1;
                                      } else {
                                          return 41;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[46] < 1) {
                              if (features[58] < 7) {
                                  if (features[50] < 4) {
                                      return 21;
                                  } else {
                                      if (features[50] < 12) {
                                          return 1;
                                      } else {
                                          return 2;
                                      }
                                  }
                              } else {
                                  if (features[26] < 2) {
                                      return 4;
                                  } else {
                                      return 2;
                                  }
                              }
                          } else {
                              if (features[45] < 13) {
                                  return 1;
                              } else {
                                  if (features[17] < 5) {
                                      return 1;
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[52] < 5) {
                          if (features[37] < 4) {
                              return 4;
                          } else {
                              if (features[29] < 15) {
                                  return 21;
                              } else {
                                  return 2;
                              }
                          }
                      } else {
                          if (features[22] < 2) {
                              if (features[60] < 5) {
                                  return 5;
                              } else {
                                  if (features[5] < 11) {
                                      return 4;
                                  } else {
                                      if (features[19] < 1) {
                                          return 42;
                                      } else {
                                          return 4;
                                      }
                                  }
                              }
                          } else {
                              if (features[50] < 13) {
                                  if (features[15] < 2) {
                                      return 0;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[44] < 2) {
                                      return 1;
                                  } else {
                                      return 4;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[53] < 14) {
                      if (features[20] < 5) {
                          if (features[13] < 2) {
                              return 3;
                          } else {
                              return 5;
                          }
                      } else {
                          if (features[38] < 0) {
                              if (features[10] < 9) {
                                  return 3;
                              } else {
                                  if (features[29] < 1) {
                                      if (features[51] < 13) {
                                          return 3;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 3;
                                  }
                              }
                          } else {
                              if (features[10] < 12) {
                                  return 1;
                              } else {
                                  return 0;
                              }
                          }
                      }
                  } else {
                      if (features[46] < 5) {
                          if (features[58] < 5) {
                              return 3;
                          } else {
                              return 4;
                          }
                      } else {
                          return 1;
                      }
                  }
              }
          } else {
              if (features[36] < 0) {
                  if (features[5] < 9) {
                      if (features[42] < 2) {
                          if (features[54] < 4) {
                              return 1;
                          } else {
                              return 5;
                          }
                      } else {
                          if (features[21] < 1) {
                              if (features[54] < 2) {
                                  return 8;
                              } else {
                                  if (features[18] < 11) {
                                      return 4;
                                  } else {
                                      return 19;
                                  }
                              }
                          } else {
                              if (features[20] < 5) {
                                  return 13;
                              } else {
                                  if (features[21] < 7) {
                                      if (features[61] < 6) {
                                          return 8;
                                      } else {
                                          return 19;
                                      }
                                  } else {
                                      return 13;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[42] < 5) {
                          return 5;
                      } else {
                          if (features[30] < 3) {
                              if (features[4] < 14) {
                                  return 2;
                              } else {
                                  return 5;
                              }
                          } else {
                              return 13;
                          }
                      }
                  }
              } else {
                  if (features[38] < 0) {
                      if (features[58] < 8) {
                          if (features[12] < 15) {
                              if (features[21] < 1) {
                                  if (features[46] < 2) {
                                      if (features[6] < 1) {
                                          return 43;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[42] < 8) {
                                          return 44;
                                      } else {
                                          return 19;
                                      }
                                  }
                              } else {
                                  if (features[35] < 11) {
                                      if (features[43] < 1) {
                                          return 45;
                                      } else {
                                          return 46;
                                      }
                                  } else {
                                      if (features[50] < 3) {
                                          return 47;
                                      } else {
                                          return 48;
                                      }
                                  }
                              }
                          } else {
                              if (features[17] < 3) {
                                  if (features[2] < 0) {
                                      return 3;
                                  } else {
                                      if (features[52] < 8) {
                                          return 49;
                                      } else {
                                          return 50;
                                      }
                                  }
                              } else {
                                  if (features[26] < 13) {
                                      return 4;
                                  } else {
                                      if (features[35] < 11) {
                                          return 1;
                                      } else {
                                          return 51;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[42] < 4) {
                              if (features[25] < 1) {
                                  if (features[10] < 14) {
                                      if (features[26] < 6) {
                                          return 0;
                                      } else {
                                          return 52;
                                      }
                                  } else {
                                      if (features[29] < 9) {
                                          return 5;
                                      } else {
                                          return 1;
                                      }
                                  }
                              } else {
                                  if (features[22] < 0) {
                                      return 5;
                                  } else {
                                      if (features[59] < 8) {
                                          return 21;
                                      } else {
                                          return 1;
                                      }
                                  }
                              }
                          } else {
                              if (features[61] < 8) {
                                  if (features[44] < 4) {
                                      if (features[50] < 10) {
                                          return 21;
                                      } else {
                                          return 53;
                                      }
                                  } else {
                                      if (features[21] < 2) {
                                          return 5;
                                      } else {
                                          return 54;
                                      }
                                  }
                              } else {
                                  if (features[37] < 1) {
                                      return 4;
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[26] < 9) {
                          if (features[61] < 2) {
                              if (features[41] < 8) {
                                  return 21;
                              } else {
                                  return 8;
                              }
                          } else {
                              if (features[13] < 11) {
                                  if (features[58] < 2) {
                                      if (features[11] < 9) {
                                          return 8;
                                      } else {
                                          return 19;
                                      }
                                  } else {
                                      return 0;
                                  }
                              } else {
                                  if (features[42] < 5) {
                                      return 1;
                                  } else {
                                      return 0;
                                  }
                              }
                          }
                      } else {
                          if (features[58] < 0) {
                              if (features[53] < 15) {
                                  if (features[44] < 6) {
                                      if (features[51] < 6) {
                                          return 55;
                                      } else {
                                          return 19;
                                      }
                                  } else {
                                      if (features[12] < 0) {
                                          return 19;
                                      } else {
                                          return 56;
                                      }
                                  }
                              } else {
                                  if (features[50] < 4) {
                                      return 3;
                                  } else {
                                      return 19;
                                  }
                              }
                          } else {
                              if (features[19] < 2) {
                                  if (features[30] < 0) {
                                      if (features[27] < 5) {
                                          return 19;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[60] < 1) {
                                          return 21;
                                      } else {
                                          return 57;
                                      }
                                  }
                              } else {
                                  if (features[25] < 7) {
                                      if (features[29] < 13) {
                                          return 58;
                                      } else {
                                          return 59;
                                      }
                                  } else {
                                      if (features[53] < 3) {
                                          return 8;
                                      } else {
                                          return 60;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_2(const int16_t *features, int32_t features_length) {
          if (features[21] < 1) {
              if (features[61] < 8) {
                  if (features[4] < 4) {
                      if (features[61] < 2) {
                          if (features[27] < 7) {
                              return 8;
                          } else {
                              return 21;
                          }
                      } else {
                          if (features[28] < 2) {
                              return 19;
                          } else {
                              return 4;
                          }
                      }
                  } else {
                      if (features[6] < 0) {
                          if (features[43] < 4) {
                              if (features[5] < 1) {
                                  if (features[35] < 8) {
                                      if (features[11] < 10) {
                                          return 5;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      return 0;
                                  }
                              } else {
                                  if (features[36] < 0) {
                                      return 13;
                                  } else {
                                      if (features[15] < 3) {
                                          return 61;
                                      } else {
                                          return 8;
                                      }
                                  }
                              }
                          } else {
                              if (features[46] < 0) {
                                  if (features[33] < 2) {
                                      if (features[27] < 13) {
                                          return 62;
                                      } else {
                                          return 63;
                                      }
                                  } else {
                                      if (features[51] < 15) {
                                          return 8;
                                      } else {
                                          return 3;
                                      }
                                  }
                              } else {
                                  if (features[44] < 5) {
                                      if (features[60] < 13) {
                                          return 19;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      return 8;
                                  }
                              }
                          }
                      } else {
                          if (features[27] < 1) {
                              if (features[50] < 12) {
                                  return 5;
                              } else {
                                  return 13;
                              }
                          } else {
                              return 5;
                          }
                      }
                  }
              } else {
                  if (features[52] < 12) {
                      if (features[34] < 9) {
                          if (features[38] < 0) {
                              if (features[46] < 3) {
                                  if (features[37] < 0) {
                                      if (features[25] < 4) {
                                          return 4;
                                      } else {
                                          return 64;
                                      }
                                  } else {
                                      if (features[13] < 0) {
                                          return 3;
                                      } else {
                                          return 2;
                                      }
                                  }
                              } else {
                                  if (features[10] < 14) {
                                      return 19;
                                  } else {
                                      return 5;
                                  }
                              }
                          } else {
                              if (features[26] < 5) {
                                  return 0;
                              } else {
                                  if (features[62] < 8) {
                                      if (features[35] < 8) {
                                          return 5;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[35] < 10) {
                                          return 1;
                                      } else {
                                          return 19;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[61] < 9) {
                              if (features[34] < 14) {
                                  return 8;
                              } else {
                                  return 19;
                              }
                          } else {
                              if (features[5] < 13) {
                                  if (features[25] < 11) {
                                      return 19;
                                  } else {
                                      return 5;
                                  }
                              } else {
                                  return 5;
                              }
                          }
                      }
                  } else {
                      if (features[44] < 7) {
                          if (features[46] < 6) {
                              return 4;
                          } else {
                              return 19;
                          }
                      } else {
                          if (features[19] < 9) {
                              return 4;
                          } else {
                              if (features[36] < 6) {
                                  if (features[60] < 13) {
                                      return 8;
                                  } else {
                                      return 19;
                                  }
                              } else {
                                  if (features[27] < 12) {
                                      if (features[2] < 0) {
                                          return 19;
                                      } else {
                                          return 3;
                                      }
                                  } else {
                                      return 3;
                                  }
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[61] < 0) {
                  if (features[38] < 0) {
                      if (features[51] < 13) {
                          if (features[27] < 12) {
                              if (features[37] < 1) {
                                  return 2;
                              } else {
                                  if (features[7] < 13) {
                                      if (features[13] < 2) {
                                          return 8;
                                      } else {
                                          return 65;
                                      }
                                  } else {
                                      return 8;
                                  }
                              }
                          } else {
                              if (features[20] < 2) {
                                  return 5;
                              } else {
                                  if (features[58] < 13) {
                                      return 2;
                                  } else {
                                      if (features[57] < 0) {
                                          return 21;
                                      } else {
                                          return 0;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[35] < 15) {
                              if (features[17] < 5) {
                                  if (features[3] < 15) {
                                      return 21;
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[19] < 14) {
                                  return 21;
                              } else {
                                  return 3;
                              }
                          }
                      }
                  } else {
                      if (features[5] < 8) {
                          if (features[10] < 10) {
                              if (features[34] < 9) {
                                  if (features[60] < 5) {
                                      return 21;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  if (features[33] < 1) {
                                      return 21;
                                  } else {
                                      if (features[22] < 0) {
                                          return 66;
                                      } else {
                                          return 8;
                                      }
                                  }
                              }
                          } else {
                              if (features[28] < 3) {
                                  return 13;
                              } else {
                                  if (features[12] < 7) {
                                      if (features[17] < 1) {
                                          return 1;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      return 21;
                                  }
                              }
                          }
                      } else {
                          if (features[3] < 5) {
                              if (features[3] < 2) {
                                  return 1;
                              } else {
                                  if (features[13] < 11) {
                                      return 13;
                                  } else {
                                      return 21;
                                  }
                              }
                          } else {
                              if (features[43] < 0) {
                                  return 5;
                              } else {
                                  return 21;
                              }
                          }
                      }
                  }
              } else {
                  if (features[30] < 2) {
                      if (features[10] < 5) {
                          if (features[38] < 5) {
                              if (features[27] < 8) {
                                  if (features[17] < 5) {
                                      if (features[44] < 13) {
                                          return 67;
                                      } else {
                                          return 68;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  if (features[44] < 12) {
                                      if (features[20] < 12) {
                                          return 69;
                                      } else {
                                          return 70;
                                      }
                                  } else {
                                      return 3;
                                  }
                              }
                          } else {
                              return 8;
                          }
                      } else {
                          if (features[36] < 3) {
                              if (features[12] < 8) {
                                  if (features[37] < 14) {
                                      if (features[53] < 4) {
                                          return 4;
                                      } else {
                                          return 71;
                                      }
                                  } else {
                                      return 5;
                                  }
                              } else {
                                  if (features[42] < 9) {
                                      return 1;
                                  } else {
                                      if (features[62] < 3) {
                                          return 72;
                                      } else {
                                          return 4;
                                      }
                                  }
                              }
                          } else {
                              if (features[34] < 3) {
                                  if (features[43] < 1) {
                                      if (features[26] < 7) {
                                          return 73;
                                      } else {
                                          return 74;
                                      }
                                  } else {
                                      if (features[37] < 8) {
                                          return 75;
                                      } else {
                                          return 76;
                                      }
                                  }
                              } else {
                                  if (features[46] < 6) {
                                      if (features[57] < 2) {
                                          return 77;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      if (features[53] < 15) {
                                          return 1;
                                      } else {
                                          return 78;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[42] < 4) {
                          if (features[34] < 15) {
                              if (features[44] < 10) {
                                  if (features[6] < 2) {
                                      return 1;
                                  } else {
                                      if (features[53] < 11) {
                                          return 1;
                                      } else {
                                          return 79;
                                      }
                                  }
                              } else {
                                  if (features[14] < 4) {
                                      return 4;
                                  } else {
                                      if (features[30] < 3) {
                                          return 1;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          } else {
                              if (features[36] < 3) {
                                  return 5;
                              } else {
                                  if (features[21] < 9) {
                                      return 8;
                                  } else {
                                      if (features[61] < 11) {
                                          return 1;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[58] < 0) {
                              if (features[29] < 12) {
                                  if (features[34] < 15) {
                                      return 13;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  if (features[20] < 7) {
                                      if (features[28] < 10) {
                                          return 8;
                                      } else {
                                          return 1;
                                      }
                                  } else {
                                      if (features[44] < 7) {
                                          return 19;
                                      } else {
                                          return 4;
                                      }
                                  }
                              }
                          } else {
                              if (features[36] < 7) {
                                  return 13;
                              } else {
                                  if (features[5] < 11) {
                                      return 2;
                                  } else {
                                      return 0;
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_3(const int16_t *features, int32_t features_length) {
          if (features[34] < 11) {
              if (features[38] < 0) {
                  if (features[26] < 7) {
                      if (features[27] < 12) {
                          if (features[62] < 2) {
                              if (features[54] < 7) {
                                  if (features[42] < 0) {
                                      if (features[45] < 4) {
                                          return 80;
                                      } else {
                                          return 81;
                                      }
                                  } else {
                                      if (features[53] < 1) {
                                          return 82;
                                      } else {
                                          return 83;
                                      }
                                  }
                              } else {
                                  return 4;
                              }
                          } else {
                              if (features[2] < 5) {
                                  if (features[27] < 10) {
                                      if (features[42] < 3) {
                                          return 84;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      if (features[3] < 13) {
                                          return 2;
                                      } else {
                                          return 80;
                                      }
                                  }
                              } else {
                                  return 4;
                              }
                          }
                      } else {
                          if (features[18] < 6) {
                              if (features[43] < 12) {
                                  if (features[55] < 0) {
                                      if (features[44] < 1) {
                                          return 4;
                                      } else {
                                          return 85;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  if (features[20] < 6) {
                                      return 2;
                                  } else {
                                      return 3;
                                  }
                              }
                          } else {
                              if (features[50] < 8) {
                                  if (features[61] < 1) {
                                      return 5;
                                  } else {
                                      return 1;
                                  }
                              } else {
                                  if (features[57] < 1) {
                                      if (features[14] < 9) {
                                          return 2;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[28] < 7) {
                                          return 4;
                                      } else {
                                          return 86;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[52] < 9) {
                          if (features[60] < 6) {
                              if (features[20] < 1) {
                                  if (features[7] < 3) {
                                      return 5;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[44] < 10) {
                                      if (features[12] < 3) {
                                          return 2;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      return 1;
                                  }
                              }
                          } else {
                              if (features[43] < 1) {
                                  if (features[53] < 8) {
                                      return 2;
                                  } else {
                                      if (features[21] < 5) {
                                          return 5;
                                      } else {
                                          return 87;
                                      }
                                  }
                              } else {
                                  if (features[59] < 7) {
                                      if (features[10] < 4) {
                                          return 19;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[63] < 4) {
                                          return 88;
                                      } else {
                                          return 4;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[43] < 1) {
                              if (features[21] < 7) {
                                  return 5;
                              } else {
                                  if (features[2] < 0) {
                                      if (features[35] < 7) {
                                          return 3;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[42] < 5) {
                                          return 1;
                                      } else {
                                          return 13;
                                      }
                                  }
                              }
                          } else {
                              if (features[19] < 11) {
                                  if (features[28] < 4) {
                                      if (features[6] < 13) {
                                          return 5;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      if (features[26] < 15) {
                                          return 89;
                                      } else {
                                          return 8;
                                      }
                                  }
                              } else {
                                  if (features[2] < 12) {
                                      return 3;
                                  } else {
                                      return 5;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[60] < 8) {
                      if (features[36] < 13) {
                          if (features[13] < 8) {
                              if (features[53] < 4) {
                                  return 1;
                              } else {
                                  return 5;
                              }
                          } else {
                              if (features[34] < 4) {
                                  return 1;
                              } else {
                                  return 13;
                              }
                          }
                      } else {
                          if (features[38] < 1) {
                              if (features[5] < 8) {
                                  if (features[29] < 13) {
                                      return 0;
                                  } else {
                                      return 1;
                                  }
                              } else {
                                  return 21;
                              }
                          } else {
                              if (features[60] < 7) {
                                  return 21;
                              } else {
                                  if (features[11] < 14) {
                                      return 21;
                                  } else {
                                      return 8;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[30] < 0) {
                          if (features[43] < 7) {
                              if (features[21] < 1) {
                                  if (features[26] < 12) {
                                      if (features[20] < 4) {
                                          return 5;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[20] < 10) {
                                          return 5;
                                      } else {
                                          return 1;
                                      }
                                  }
                              } else {
                                  if (features[34] < 9) {
                                      if (features[62] < 7) {
                                          return 90;
                                      } else {
                                          return 91;
                                      }
                                  } else {
                                      return 1;
                                  }
                              }
                          } else {
                              if (features[29] < 0) {
                                  return 19;
                              } else {
                                  if (features[2] < 0) {
                                      return 8;
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      } else {
                          if (features[21] < 12) {
                              if (features[33] < 2) {
                                  if (features[20] < 14) {
                                      if (features[17] < 3) {
                                          return 92;
                                      } else {
                                          return 93;
                                      }
                                  } else {
                                      return 0;
                                  }
                              } else {
                                  if (features[28] < 4) {
                                      if (features[17] < 0) {
                                          return 8;
                                      } else {
                                          return 13;
                                      }
                                  } else {
                                      if (features[45] < 10) {
                                          return 8;
                                      } else {
                                          return 5;
                                      }
                                  }
                              }
                          } else {
                              if (features[20] < 2) {
                                  if (features[28] < 8) {
                                      return 13;
                                  } else {
                                      if (features[36] < 8) {
                                          return 1;
                                      } else {
                                          return 94;
                                      }
                                  }
                              } else {
                                  if (features[10] < 3) {
                                      if (features[12] < 13) {
                                          return 1;
                                      } else {
                                          return 3;
                                      }
                                  } else {
                                      if (features[33] < 2) {
                                          return 95;
                                      } else {
                                          return 13;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[58] < 0) {
                  if (features[50] < 2) {
                      if (features[13] < 7) {
                          return 8;
                      } else {
                          if (features[53] < 8) {
                              if (features[53] < 4) {
                                  if (features[5] < 9) {
                                      return 8;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[18] < 6) {
                                      return 21;
                                  } else {
                                      return 1;
                                  }
                              }
                          } else {
                              if (features[14] < 10) {
                                  return 3;
                              } else {
                                  return 1;
                              }
                          }
                      }
                  } else {
                      if (features[41] < 7) {
                          if (features[61] < 6) {
                              if (features[18] < 12) {
                                  return 3;
                              } else {
                                  return 13;
                              }
                          } else {
                              if (features[22] < 0) {
                                  if (features[21] < 8) {
                                      return 19;
                                  } else {
                                      if (features[30] < 2) {
                                          return 3;
                                      } else {
                                          return 13;
                                      }
                                  }
                              } else {
                                  if (features[51] < 10) {
                                      return 13;
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      } else {
                          if (features[26] < 4) {
                              return 2;
                          } else {
                              return 8;
                          }
                      }
                  }
              } else {
                  if (features[45] < 2) {
                      if (features[12] < 15) {
                          if (features[38] < 0) {
                              if (features[6] < 1) {
                                  if (features[27] < 11) {
                                      if (features[41] < 1) {
                                          return 96;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      if (features[13] < 2) {
                                          return 3;
                                      } else {
                                          return 2;
                                      }
                                  }
                              } else {
                                  return 5;
                              }
                          } else {
                              if (features[61] < 3) {
                                  if (features[18] < 15) {
                                      return 21;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  return 19;
                              }
                          }
                      } else {
                          if (features[19] < 10) {
                              return 21;
                          } else {
                              return 3;
                          }
                      }
                  } else {
                      if (features[36] < 0) {
                          if (features[25] < 0) {
                              return 8;
                          } else {
                              if (features[42] < 9) {
                                  return 5;
                              } else {
                                  return 13;
                              }
                          }
                      } else {
                          if (features[5] < 4) {
                              if (features[34] < 13) {
                                  if (features[17] < 3) {
                                      if (features[51] < 15) {
                                          return 97;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      return 2;
                                  }
                              } else {
                                  if (features[44] < 13) {
                                      if (features[61] < 2) {
                                          return 13;
                                      } else {
                                          return 98;
                                      }
                                  } else {
                                      if (features[29] < 4) {
                                          return 99;
                                      } else {
                                          return 100;
                                      }
                                  }
                              }
                          } else {
                              if (features[20] < 15) {
                                  if (features[22] < 0) {
                                      if (features[5] < 10) {
                                          return 101;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[60] < 9) {
                                          return 21;
                                      } else {
                                          return 102;
                                      }
                                  }
                              } else {
                                  return 3;
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_4(const int16_t *features, int32_t features_length) {
          if (features[33] < 3) {
              if (features[60] < 2) {
                  if (features[26] < 14) {
                      if (features[36] < 12) {
                          if (features[59] < 12) {
                              if (features[50] < 7) {
                                  if (features[44] < 8) {
                                      return 1;
                                  } else {
                                      return 0;
                                  }
                              } else {
                                  return 21;
                              }
                          } else {
                              if (features[11] < 15) {
                                  return 5;
                              } else {
                                  return 21;
                              }
                          }
                      } else {
                          if (features[35] < 1) {
                              return 1;
                          } else {
                              return 21;
                          }
                      }
                  } else {
                      if (features[27] < 4) {
                          return 21;
                      } else {
                          return 5;
                      }
                  }
              } else {
                  if (features[30] < 0) {
                      if (features[43] < 1) {
                          if (features[6] < 2) {
                              if (features[26] < 3) {
                                  if (features[19] < 13) {
                                      if (features[3] < 7) {
                                          return 2;
                                      } else {
                                          return 103;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  if (features[22] < 3) {
                                      if (features[12] < 13) {
                                          return 104;
                                      } else {
                                          return 105;
                                      }
                                  } else {
                                      return 2;
                                  }
                              }
                          } else {
                              if (features[20] < 4) {
                                  return 5;
                              } else {
                                  if (features[35] < 9) {
                                      if (features[26] < 2) {
                                          return 0;
                                      } else {
                                          return 106;
                                      }
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      } else {
                          if (features[54] < 0) {
                              if (features[12] < 15) {
                                  if (features[49] < 3) {
                                      if (features[42] < 4) {
                                          return 107;
                                      } else {
                                          return 108;
                                      }
                                  } else {
                                      if (features[35] < 11) {
                                          return 4;
                                      } else {
                                          return 109;
                                      }
                                  }
                              } else {
                                  if (features[2] < 8) {
                                      if (features[10] < 14) {
                                          return 110;
                                      } else {
                                          return 111;
                                      }
                                  } else {
                                      if (features[14] < 1) {
                                          return 4;
                                      } else {
                                          return 112;
                                      }
                                  }
                              }
                          } else {
                              if (features[20] < 3) {
                                  if (features[54] < 8) {
                                      if (features[21] < 4) {
                                          return 113;
                                      } else {
                                          return 114;
                                      }
                                  } else {
                                      if (features[21] < 7) {
                                          return 115;
                                      } else {
                                          return 2;
                                      }
                                  }
                              } else {
                                  if (features[52] < 4) {
                                      if (features[2] < 11) {
                                          return 116;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      if (features[45] < 7) {
                                          return 117;
                                      } else {
                                          return 118;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[26] < 4) {
                          if (features[36] < 6) {
                              if (features[27] < 4) {
                                  if (features[30] < 4) {
                                      return 0;
                                  } else {
                                      return 4;
                                  }
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[60] < 10) {
                                  if (features[37] < 7) {
                                      if (features[4] < 14) {
                                          return 0;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[50] < 10) {
                                      if (features[52] < 4) {
                                          return 2;
                                      } else {
                                          return 119;
                                      }
                                  } else {
                                      if (features[13] < 15) {
                                          return 2;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[33] < 1) {
                              if (features[42] < 4) {
                                  if (features[28] < 2) {
                                      if (features[34] < 2) {
                                          return 2;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      if (features[6] < 4) {
                                          return 120;
                                      } else {
                                          return 121;
                                      }
                                  }
                              } else {
                                  if (features[36] < 11) {
                                      if (features[18] < 12) {
                                          return 122;
                                      } else {
                                          return 123;
                                      }
                                  } else {
                                      if (features[63] < 0) {
                                          return 2;
                                      } else {
                                          return 19;
                                      }
                                  }
                              }
                          } else {
                              if (features[28] < 3) {
                                  return 13;
                              } else {
                                  if (features[11] < 13) {
                                      if (features[10] < 8) {
                                          return 1;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      return 8;
                                  }
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[3] < 8) {
                  if (features[61] < 9) {
                      if (features[2] < 1) {
                          if (features[11] < 5) {
                              if (features[42] < 6) {
                                  return 3;
                              } else {
                                  return 8;
                              }
                          } else {
                              if (features[18] < 15) {
                                  if (features[36] < 0) {
                                      if (features[46] < 0) {
                                          return 13;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  if (features[11] < 14) {
                                      return 19;
                                  } else {
                                      return 8;
                                  }
                              }
                          }
                      } else {
                          if (features[36] < 7) {
                              return 13;
                          } else {
                              if (features[4] < 12) {
                                  return 5;
                              } else {
                                  return 21;
                              }
                          }
                      }
                  } else {
                      if (features[20] < 10) {
                          if (features[29] < 4) {
                              if (features[30] < 3) {
                                  return 19;
                              } else {
                                  return 13;
                              }
                          } else {
                              if (features[13] < 5) {
                                  return 8;
                              } else {
                                  return 1;
                              }
                          }
                      } else {
                          return 3;
                      }
                  }
              } else {
                  if (features[30] < 2) {
                      if (features[17] < 4) {
                          if (features[61] < 6) {
                              if (features[37] < 2) {
                                  if (features[58] < 9) {
                                      return 3;
                                  } else {
                                      return 2;
                                  }
                              } else {
                                  if (features[51] < 6) {
                                      if (features[58] < 1) {
                                          return 21;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[53] < 8) {
                                          return 124;
                                      } else {
                                          return 13;
                                      }
                                  }
                              }
                          } else {
                              if (features[42] < 10) {
                                  return 3;
                              } else {
                                  return 19;
                              }
                          }
                      } else {
                          if (features[37] < 13) {
                              return 5;
                          } else {
                              if (features[3] < 15) {
                                  if (features[11] < 13) {
                                      return 13;
                                  } else {
                                      return 19;
                                  }
                              } else {
                                  return 5;
                              }
                          }
                      }
                  } else {
                      if (features[60] < 6) {
                          if (features[17] < 0) {
                              return 21;
                          } else {
                              if (features[28] < 6) {
                                  return 13;
                              } else {
                                  return 8;
                              }
                          }
                      } else {
                          if (features[58] < 0) {
                              if (features[27] < 12) {
                                  if (features[5] < 0) {
                                      return 8;
                                  } else {
                                      if (features[13] < 4) {
                                          return 8;
                                      } else {
                                          return 13;
                                      }
                                  }
                              } else {
                                  return 19;
                              }
                          } else {
                              if (features[28] < 8) {
                                  return 13;
                              } else {
                                  if (features[6] < 1) {
                                      return 0;
                                  } else {
                                      return 5;
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_5(const int16_t *features, int32_t features_length) {
          if (features[21] < 1) {
              if (features[10] < 13) {
                  if (features[54] < 1) {
                      if (features[3] < 11) {
                          if (features[14] < 10) {
                              if (features[35] < 12) {
                                  return 8;
                              } else {
                                  if (features[46] < 0) {
                                      if (features[61] < 4) {
                                          return 8;
                                      } else {
                                          return 19;
                                      }
                                  } else {
                                      if (features[13] < 1) {
                                          return 8;
                                      } else {
                                          return 5;
                                      }
                                  }
                              }
                          } else {
                              if (features[33] < 1) {
                                  return 21;
                              } else {
                                  return 5;
                              }
                          }
                      } else {
                          if (features[26] < 9) {
                              if (features[59] < 10) {
                                  return 21;
                              } else {
                                  return 3;
                              }
                          } else {
                              if (features[28] < 2) {
                                  if (features[52] < 8) {
                                      return 13;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  if (features[42] < 11) {
                                      return 5;
                                  } else {
                                      if (features[60] < 15) {
                                          return 125;
                                      } else {
                                          return 19;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[2] < 4) {
                          if (features[46] < 1) {
                              if (features[18] < 9) {
                                  if (features[52] < 10) {
                                      if (features[37] < 4) {
                                          return 19;
                                      } else {
                                          return 3;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  return 19;
                              }
                          } else {
                              return 19;
                          }
                      } else {
                          if (features[37] < 2) {
                              if (features[19] < 11) {
                                  return 4;
                              } else {
                                  return 3;
                              }
                          } else {
                              if (features[34] < 14) {
                                  if (features[18] < 5) {
                                      if (features[52] < 10) {
                                          return 0;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 5;
                                  }
                              } else {
                                  return 19;
                              }
                          }
                      }
                  }
              } else {
                  if (features[4] < 7) {
                      if (features[38] < 0) {
                          if (features[4] < 0) {
                              if (features[9] < 7) {
                                  return 3;
                              } else {
                                  return 4;
                              }
                          } else {
                              return 4;
                          }
                      } else {
                          if (features[50] < 8) {
                              return 1;
                          } else {
                              return 19;
                          }
                      }
                  } else {
                      if (features[62] < 1) {
                          if (features[41] < 4) {
                              if (features[13] < 2) {
                                  if (features[37] < 13) {
                                      if (features[22] < 1) {
                                          return 126;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      if (features[11] < 6) {
                                          return 5;
                                      } else {
                                          return 0;
                                      }
                                  }
                              } else {
                                  if (features[60] < 14) {
                                      return 5;
                                  } else {
                                      if (features[4] < 11) {
                                          return 0;
                                      } else {
                                          return 127;
                                      }
                                  }
                              }
                          } else {
                              if (features[13] < 7) {
                                  return 0;
                              } else {
                                  return 13;
                              }
                          }
                      } else {
                          if (features[54] < 10) {
                              return 4;
                          } else {
                              if (features[34] < 5) {
                                  return 5;
                              } else {
                                  return 2;
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[44] < 5) {
                  if (features[30] < 1) {
                      if (features[42] < 1) {
                          if (features[52] < 0) {
                              if (features[29] < 5) {
                                  return 0;
                              } else {
                                  if (features[18] < 4) {
                                      if (features[1] < 0) {
                                          return 1;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[19] < 6) {
                                          return 1;
                                      } else {
                                          return 128;
                                      }
                                  }
                              }
                          } else {
                              if (features[34] < 0) {
                                  if (features[5] < 0) {
                                      if (features[9] < 4) {
                                          return 129;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[51] < 12) {
                                          return 130;
                                      } else {
                                          return 131;
                                      }
                                  }
                              } else {
                                  if (features[25] < 1) {
                                      if (features[50] < 3) {
                                          return 1;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[4] < 5) {
                                          return 3;
                                      } else {
                                          return 132;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[2] < 8) {
                              if (features[35] < 8) {
                                  if (features[29] < 14) {
                                      if (features[52] < 2) {
                                          return 94;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      return 13;
                                  }
                              } else {
                                  if (features[51] < 13) {
                                      if (features[19] < 0) {
                                          return 133;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[13] < 14) {
                                          return 134;
                                      } else {
                                          return 135;
                                      }
                                  }
                              }
                          } else {
                              if (features[43] < 6) {
                                  if (features[52] < 3) {
                                      return 2;
                                  } else {
                                      if (features[58] < 9) {
                                          return 5;
                                      } else {
                                          return 0;
                                      }
                                  }
                              } else {
                                  if (features[60] < 6) {
                                      return 21;
                                  } else {
                                      return 4;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[29] < 13) {
                          if (features[41] < 0) {
                              if (features[35] < 11) {
                                  if (features[20] < 4) {
                                      return 13;
                                  } else {
                                      if (features[10] < 14) {
                                          return 1;
                                      } else {
                                          return 10;
                                      }
                                  }
                              } else {
                                  if (features[46] < 0) {
                                      return 21;
                                  } else {
                                      if (features[13] < 8) {
                                          return 8;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          } else {
                              if (features[25] < 0) {
                                  if (features[20] < 8) {
                                      return 13;
                                  } else {
                                      return 1;
                                  }
                              } else {
                                  return 13;
                              }
                          }
                      } else {
                          if (features[2] < 6) {
                              if (features[36] < 0) {
                                  if (features[51] < 12) {
                                      if (features[34] < 2) {
                                          return 1;
                                      } else {
                                          return 13;
                                      }
                                  } else {
                                      if (features[11] < 15) {
                                          return 136;
                                      } else {
                                          return 13;
                                      }
                                  }
                              } else {
                                  if (features[14] < 3) {
                                      return 1;
                                  } else {
                                      if (features[2] < 2) {
                                          return 137;
                                      } else {
                                          return 138;
                                      }
                                  }
                              }
                          } else {
                              if (features[45] < 1) {
                                  return 21;
                              } else {
                                  if (features[21] < 6) {
                                      return 5;
                                  } else {
                                      return 1;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[60] < 4) {
                      if (features[26] < 11) {
                          if (features[29] < 4) {
                              if (features[12] < 6) {
                                  if (features[45] < 3) {
                                      return 2;
                                  } else {
                                      if (features[21] < 8) {
                                          return 13;
                                      } else {
                                          return 8;
                                      }
                                  }
                              } else {
                                  return 21;
                              }
                          } else {
                              if (features[42] < 15) {
                                  if (features[43] < 2) {
                                      return 0;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[11] < 6) {
                                      return 3;
                                  } else {
                                      return 21;
                                  }
                              }
                          }
                      } else {
                          if (features[34] < 8) {
                              if (features[28] < 15) {
                                  if (features[9] < 3) {
                                      return 21;
                                  } else {
                                      return 5;
                                  }
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[43] < 5) {
                                  return 5;
                              } else {
                                  return 8;
                              }
                          }
                      }
                  } else {
                      if (features[34] < 12) {
                          if (features[10] < 7) {
                              if (features[33] < 5) {
                                  if (features[52] < 6) {
                                      return 2;
                                  } else {
                                      if (features[12] < 13) {
                                          return 139;
                                      } else {
                                          return 140;
                                      }
                                  }
                              } else {
                                  if (features[20] < 11) {
                                      return 8;
                                  } else {
                                      return 3;
                                  }
                              }
                          } else {
                              if (features[50] < 6) {
                                  if (features[60] < 7) {
                                      if (features[18] < 0) {
                                          return 141;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      if (features[26] < 5) {
                                          return 142;
                                      } else {
                                          return 143;
                                      }
                                  }
                              } else {
                                  if (features[27] < 6) {
                                      if (features[51] < 15) {
                                          return 144;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      if (features[19] < 15) {
                                          return 145;
                                      } else {
                                          return 28;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[45] < 0) {
                              if (features[30] < 4) {
                                  if (features[51] < 13) {
                                      return 2;
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  return 8;
                              }
                          } else {
                              if (features[26] < 6) {
                                  if (features[35] < 14) {
                                      return 2;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[53] < 6) {
                                      if (features[43] < 0) {
                                          return 21;
                                      } else {
                                          return 146;
                                      }
                                  } else {
                                      if (features[13] < 7) {
                                          return 147;
                                      } else {
                                          return 148;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_6(const int16_t *features, int32_t features_length) {
          if (features[30] < 1) {
              if (features[54] < 1) {
                  if (features[58] < 2) {
                      if (features[3] < 11) {
                          if (features[27] < 8) {
                              if (features[33] < 3) {
                                  if (features[17] < 4) {
                                      if (features[58] < 1) {
                                          return 149;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[2] < 1) {
                                      return 8;
                                  } else {
                                      return 21;
                                  }
                              }
                          } else {
                              if (features[29] < 1) {
                                  if (features[58] < 0) {
                                      if (features[46] < 0) {
                                          return 150;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      if (features[21] < 4) {
                                          return 5;
                                      } else {
                                          return 151;
                                      }
                                  }
                              } else {
                                  if (features[10] < 5) {
                                      if (features[42] < 11) {
                                          return 152;
                                      } else {
                                          return 153;
                                      }
                                  } else {
                                      if (features[14] < 3) {
                                          return 154;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[17] < 0) {
                              if (features[28] < 7) {
                                  return 8;
                              } else {
                                  if (features[38] < 3) {
                                      if (features[20] < 14) {
                                          return 155;
                                      } else {
                                          return 3;
                                      }
                                  } else {
                                      return 21;
                                  }
                              }
                          } else {
                              if (features[35] < 13) {
                                  if (features[34] < 6) {
                                      if (features[13] < 14) {
                                          return 21;
                                      } else {
                                          return 1;
                                      }
                                  } else {
                                      return 13;
                                  }
                              } else {
                                  if (features[29] < 0) {
                                      return 3;
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[21] < 2) {
                          if (features[61] < 8) {
                              if (features[20] < 9) {
                                  return 5;
                              } else {
                                  if (features[19] < 11) {
                                      if (features[61] < 0) {
                                          return 21;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      if (features[51] < 13) {
                                          return 5;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          } else {
                              if (features[41] < 2) {
                                  return 3;
                              } else {
                                  return 19;
                              }
                          }
                      } else {
                          if (features[52] < 9) {
                              if (features[36] < 13) {
                                  if (features[52] < 4) {
                                      if (features[45] < 10) {
                                          return 156;
                                      } else {
                                          return 1;
                                      }
                                  } else {
                                      return 2;
                                  }
                              } else {
                                  if (features[50] < 10) {
                                      return 21;
                                  } else {
                                      if (features[2] < 5) {
                                          return 49;
                                      } else {
                                          return 157;
                                      }
                                  }
                              }
                          } else {
                              if (features[43] < 15) {
                                  if (features[27] < 12) {
                                      if (features[45] < 8) {
                                          return 158;
                                      } else {
                                          return 159;
                                      }
                                  } else {
                                      if (features[50] < 6) {
                                          return 160;
                                      } else {
                                          return 161;
                                      }
                                  }
                              } else {
                                  if (features[4] < 15) {
                                      if (features[51] < 14) {
                                          return 2;
                                      } else {
                                          return 162;
                                      }
                                  } else {
                                      return 4;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[28] < 5) {
                      if (features[42] < 8) {
                          if (features[26] < 6) {
                              return 4;
                          } else {
                              if (features[37] < 5) {
                                  return 3;
                              } else {
                                  if (features[18] < 6) {
                                      return 0;
                                  } else {
                                      if (features[60] < 15) {
                                          return 5;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[17] < 4) {
                              if (features[57] < 2) {
                                  if (features[37] < 7) {
                                      if (features[14] < 0) {
                                          return 19;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 19;
                                  }
                              } else {
                                  return 4;
                              }
                          } else {
                              if (features[34] < 10) {
                                  return 4;
                              } else {
                                  return 13;
                              }
                          }
                      }
                  } else {
                      if (features[4] < 8) {
                          if (features[27] < 12) {
                              if (features[46] < 4) {
                                  if (features[6] < 1) {
                                      if (features[52] < 3) {
                                          return 2;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  if (features[50] < 8) {
                                      return 1;
                                  } else {
                                      if (features[29] < 0) {
                                          return 4;
                                      } else {
                                          return 163;
                                      }
                                  }
                              }
                          } else {
                              if (features[45] < 11) {
                                  if (features[11] < 15) {
                                      if (features[42] < 7) {
                                          return 164;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      if (features[52] < 6) {
                                          return 19;
                                      } else {
                                          return 3;
                                      }
                                  }
                              } else {
                                  if (features[33] < 3) {
                                      if (features[36] < 11) {
                                          return 1;
                                      } else {
                                          return 165;
                                      }
                                  } else {
                                      return 19;
                                  }
                              }
                          }
                      } else {
                          if (features[46] < 0) {
                              if (features[14] < 0) {
                                  if (features[12] < 9) {
                                      return 2;
                                  } else {
                                      if (features[5] < 14) {
                                          return 4;
                                      } else {
                                          return 3;
                                      }
                                  }
                              } else {
                                  if (features[18] < 2) {
                                      if (features[28] < 11) {
                                          return 4;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      return 3;
                                  }
                              }
                          } else {
                              if (features[21] < 0) {
                                  if (features[34] < 14) {
                                      if (features[20] < 7) {
                                          return 166;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      return 19;
                                  }
                              } else {
                                  if (features[42] < 1) {
                                      if (features[26] < 6) {
                                          return 167;
                                      } else {
                                          return 168;
                                      }
                                  } else {
                                      if (features[49] < 0) {
                                          return 169;
                                      } else {
                                          return 170;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[43] < 3) {
                  if (features[33] < 1) {
                      if (features[3] < 0) {
                          if (features[36] < 2) {
                              return 1;
                          } else {
                              return 3;
                          }
                      } else {
                          if (features[63] < 2) {
                              if (features[21] < 8) {
                                  return 21;
                              } else {
                                  if (features[58] < 12) {
                                      return 1;
                                  } else {
                                      if (features[30] < 4) {
                                          return 1;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          } else {
                              return 4;
                          }
                      }
                  } else {
                      if (features[5] < 11) {
                          if (features[27] < 8) {
                              return 13;
                          } else {
                              if (features[28] < 5) {
                                  return 13;
                              } else {
                                  if (features[12] < 11) {
                                      if (features[21] < 1) {
                                          return 19;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      if (features[22] < 5) {
                                          return 2;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[2] < 1) {
                              if (features[26] < 15) {
                                  return 21;
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[13] < 7) {
                                  return 5;
                              } else {
                                  if (features[41] < 1) {
                                      return 5;
                                  } else {
                                      return 13;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[42] < 12) {
                      if (features[25] < 3) {
                          if (features[26] < 11) {
                              if (features[60] < 11) {
                                  return 21;
                              } else {
                                  if (features[7] < 1) {
                                      if (features[22] < 10) {
                                          return 2;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 21;
                                  }
                              }
                          } else {
                              if (features[60] < 7) {
                                  return 21;
                              } else {
                                  if (features[59] < 8) {
                                      if (features[20] < 11) {
                                          return 8;
                                      } else {
                                          return 3;
                                      }
                                  } else {
                                      if (features[2] < 0) {
                                          return 13;
                                      } else {
                                          return 171;
                                      }
                                  }
                              }
                          }
                      } else {
                          return 8;
                      }
                  } else {
                      if (features[41] < 5) {
                          if (features[36] < 6) {
                              if (features[10] < 4) {
                                  return 8;
                              } else {
                                  return 13;
                              }
                          } else {
                              if (features[27] < 11) {
                                  if (features[28] < 9) {
                                      if (features[11] < 12) {
                                          return 4;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[3] < 15) {
                                      return 2;
                                  } else {
                                      return 19;
                                  }
                              }
                          }
                      } else {
                          if (features[21] < 15) {
                              return 8;
                          } else {
                              if (features[3] < 7) {
                                  return 4;
                              } else {
                                  if (features[38] < 8) {
                                      return 13;
                                  } else {
                                      return 8;
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_7(const int16_t *features, int32_t features_length) {
          if (features[19] < 13) {
              if (features[53] < 0) {
                  if (features[58] < 0) {
                      if (features[34] < 8) {
                          if (features[45] < 2) {
                              if (features[18] < 13) {
                                  if (features[51] < 13) {
                                      return 21;
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[17] < 9) {
                                  return 21;
                              } else {
                                  return 0;
                              }
                          }
                      } else {
                          if (features[5] < 11) {
                              return 8;
                          } else {
                              return 21;
                          }
                      }
                  } else {
                      if (features[28] < 7) {
                          if (features[36] < 9) {
                              return 5;
                          } else {
                              if (features[5] < 3) {
                                  return 8;
                              } else {
                                  if (features[17] < 2) {
                                      return 21;
                                  } else {
                                      return 5;
                                  }
                              }
                          }
                      } else {
                          if (features[37] < 0) {
                              if (features[42] < 3) {
                                  if (features[52] < 4) {
                                      return 21;
                                  } else {
                                      return 5;
                                  }
                              } else {
                                  return 2;
                              }
                          } else {
                              if (features[12] < 6) {
                                  if (features[18] < 9) {
                                      return 21;
                                  } else {
                                      if (features[37] < 7) {
                                          return 172;
                                      } else {
                                          return 8;
                                      }
                                  }
                              } else {
                                  if (features[63] < 0) {
                                      if (features[20] < 2) {
                                          return 173;
                                      } else {
                                          return 174;
                                      }
                                  } else {
                                      return 1;
                                  }
                              }
                          }
                      }
                  }
              } else {
                  if (features[25] < 1) {
                      if (features[34] < 5) {
                          if (features[46] < 1) {
                              if (features[14] < 0) {
                                  if (features[45] < 8) {
                                      if (features[22] < 1) {
                                          return 175;
                                      } else {
                                          return 176;
                                      }
                                  } else {
                                      if (features[3] < 14) {
                                          return 177;
                                      } else {
                                          return 0;
                                      }
                                  }
                              } else {
                                  if (features[49] < 1) {
                                      if (features[10] < 14) {
                                          return 178;
                                      } else {
                                          return 179;
                                      }
                                  } else {
                                      if (features[43] < 10) {
                                          return 180;
                                      } else {
                                          return 4;
                                      }
                                  }
                              }
                          } else {
                              if (features[45] < 12) {
                                  if (features[18] < 11) {
                                      if (features[43] < 6) {
                                          return 181;
                                      } else {
                                          return 182;
                                      }
                                  } else {
                                      if (features[44] < 0) {
                                          return 183;
                                      } else {
                                          return 184;
                                      }
                                  }
                              } else {
                                  if (features[29] < 13) {
                                      if (features[53] < 4) {
                                          return 21;
                                      } else {
                                          return 185;
                                      }
                                  } else {
                                      if (features[1] < 0) {
                                          return 186;
                                      } else {
                                          return 0;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[54] < 9) {
                              if (features[20] < 15) {
                                  if (features[37] < 12) {
                                      if (features[21] < 1) {
                                          return 187;
                                      } else {
                                          return 188;
                                      }
                                  } else {
                                      if (features[59] < 3) {
                                          return 8;
                                      } else {
                                          return 189;
                                      }
                                  }
                              } else {
                                  if (features[10] < 6) {
                                      return 3;
                                  } else {
                                      if (features[36] < 10) {
                                          return 4;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          } else {
                              if (features[29] < 9) {
                                  return 19;
                              } else {
                                  if (features[41] < 2) {
                                      return 1;
                                  } else {
                                      return 0;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[21] < 5) {
                          if (features[13] < 0) {
                              if (features[58] < 0) {
                                  if (features[52] < 7) {
                                      return 19;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  if (features[9] < 0) {
                                      if (features[60] < 10) {
                                          return 4;
                                      } else {
                                          return 19;
                                      }
                                  } else {
                                      if (features[45] < 3) {
                                          return 4;
                                      } else {
                                          return 190;
                                      }
                                  }
                              }
                          } else {
                              if (features[45] < 0) {
                                  if (features[35] < 2) {
                                      return 5;
                                  } else {
                                      return 4;
                                  }
                              } else {
                                  if (features[27] < 1) {
                                      if (features[11] < 13) {
                                          return 5;
                                      } else {
                                          return 13;
                                      }
                                  } else {
                                      if (features[59] < 13) {
                                          return 191;
                                      } else {
                                          return 9;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[27] < 2) {
                              if (features[49] < 4) {
                                  if (features[26] < 6) {
                                      if (features[50] < 2) {
                                          return 192;
                                      } else {
                                          return 193;
                                      }
                                  } else {
                                      if (features[33] < 1) {
                                          return 194;
                                      } else {
                                          return 195;
                                      }
                                  }
                              } else {
                                  return 8;
                              }
                          } else {
                              if (features[5] < 3) {
                                  if (features[28] < 0) {
                                      return 13;
                                  } else {
                                      if (features[3] < 9) {
                                          return 196;
                                      } else {
                                          return 197;
                                      }
                                  }
                              } else {
                                  if (features[30] < 1) {
                                      if (features[26] < 10) {
                                          return 198;
                                      } else {
                                          return 199;
                                      }
                                  } else {
                                      if (features[28] < 10) {
                                          return 200;
                                      } else {
                                          return 201;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[20] < 8) {
                  if (features[27] < 14) {
                      if (features[17] < 1) {
                          if (features[33] < 5) {
                              if (features[46] < 4) {
                                  if (features[12] < 7) {
                                      return 2;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  return 19;
                              }
                          } else {
                              return 8;
                          }
                      } else {
                          if (features[33] < 2) {
                              return 5;
                          } else {
                              return 13;
                          }
                      }
                  } else {
                      if (features[10] < 4) {
                          if (features[52] < 14) {
                              return 19;
                          } else {
                              return 3;
                          }
                      } else {
                          if (features[46] < 6) {
                              if (features[63] < 2) {
                                  if (features[61] < 6) {
                                      if (features[52] < 7) {
                                          return 3;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[34] < 3) {
                                          return 1;
                                      } else {
                                          return 4;
                                      }
                                  }
                              } else {
                                  return 3;
                              }
                          } else {
                              return 19;
                          }
                      }
                  }
              } else {
                  if (features[33] < 3) {
                      if (features[10] < 13) {
                          if (features[26] < 6) {
                              if (features[36] < 8) {
                                  if (features[52] < 11) {
                                      return 1;
                                  } else {
                                      return 2;
                                  }
                              } else {
                                  if (features[12] < 15) {
                                      if (features[22] < 0) {
                                          return 202;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[50] < 10) {
                                          return 3;
                                      } else {
                                          return 155;
                                      }
                                  }
                              }
                          } else {
                              if (features[11] < 14) {
                                  if (features[37] < 15) {
                                      if (features[10] < 2) {
                                          return 203;
                                      } else {
                                          return 1;
                                      }
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  return 3;
                              }
                          }
                      } else {
                          if (features[60] < 9) {
                              return 5;
                          } else {
                              if (features[61] < 7) {
                                  return 2;
                              } else {
                                  if (features[20] < 13) {
                                      return 4;
                                  } else {
                                      if (features[50] < 7) {
                                          return 1;
                                      } else {
                                          return 4;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[50] < 8) {
                          if (features[61] < 13) {
                              if (features[42] < 2) {
                                  if (features[53] < 1) {
                                      return 8;
                                  } else {
                                      return 3;
                                  }
                              } else {
                                  return 8;
                              }
                          } else {
                              return 3;
                          }
                      } else {
                          if (features[5] < 2) {
                              return 13;
                          } else {
                              if (features[60] < 10) {
                                  return 2;
                              } else {
                                  return 3;
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_8(const int16_t *features, int32_t features_length) {
          if (features[36] < 0) {
              if (features[58] < 7) {
                  if (features[41] < 0) {
                      if (features[37] < 7) {
                          if (features[42] < 11) {
                              if (features[37] < 2) {
                                  return 19;
                              } else {
                                  return 1;
                              }
                          } else {
                              return 13;
                          }
                      } else {
                          if (features[52] < 5) {
                              if (features[42] < 6) {
                                  return 1;
                              } else {
                                  return 19;
                              }
                          } else {
                              if (features[27] < 6) {
                                  return 13;
                              } else {
                                  if (features[34] < 4) {
                                      return 1;
                                  } else {
                                      return 5;
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[49] < 6) {
                          if (features[42] < 3) {
                              return 1;
                          } else {
                              if (features[21] < 5) {
                                  if (features[26] < 14) {
                                      if (features[22] < 3) {
                                          return 8;
                                      } else {
                                          return 13;
                                      }
                                  } else {
                                      return 19;
                                  }
                              } else {
                                  if (features[28] < 5) {
                                      return 13;
                                  } else {
                                      return 2;
                                  }
                              }
                          }
                      } else {
                          return 8;
                      }
                  }
              } else {
                  if (features[28] < 0) {
                      if (features[57] < 1) {
                          return 13;
                      } else {
                          return 5;
                      }
                  } else {
                      if (features[13] < 8) {
                          if (features[57] < 3) {
                              if (features[21] < 7) {
                                  return 5;
                              } else {
                                  if (features[2] < 11) {
                                      return 5;
                                  } else {
                                      return 1;
                                  }
                              }
                          } else {
                              return 4;
                          }
                      } else {
                          if (features[6] < 1) {
                              return 1;
                          } else {
                              if (features[9] < 6) {
                                  return 5;
                              } else {
                                  return 0;
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[60] < 2) {
                  if (features[10] < 15) {
                      if (features[26] < 14) {
                          if (features[4] < 2) {
                              return 8;
                          } else {
                              if (features[36] < 12) {
                                  if (features[29] < 4) {
                                      return 0;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  return 21;
                              }
                          }
                      } else {
                          if (features[10] < 13) {
                              if (features[43] < 6) {
                                  if (features[45] < 2) {
                                      return 21;
                                  } else {
                                      return 5;
                                  }
                              } else {
                                  return 8;
                              }
                          } else {
                              return 1;
                          }
                      }
                  } else {
                      if (features[57] < 0) {
                          if (features[35] < 13) {
                              if (features[13] < 12) {
                                  return 5;
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[13] < 6) {
                                  return 5;
                              } else {
                                  return 21;
                              }
                          }
                      } else {
                          return 5;
                      }
                  }
              } else {
                  if (features[10] < 11) {
                      if (features[44] < 12) {
                          if (features[21] < 1) {
                              if (features[20] < 2) {
                                  if (features[42] < 8) {
                                      if (features[53] < 3) {
                                          return 21;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[41] < 8) {
                                          return 19;
                                      } else {
                                          return 8;
                                      }
                                  }
                              } else {
                                  if (features[2] < 0) {
                                      if (features[27] < 15) {
                                          return 8;
                                      } else {
                                          return 204;
                                      }
                                  } else {
                                      if (features[37] < 8) {
                                          return 205;
                                      } else {
                                          return 138;
                                      }
                                  }
                              }
                          } else {
                              if (features[26] < 0) {
                                  if (features[10] < 3) {
                                      if (features[60] < 9) {
                                          return 4;
                                      } else {
                                          return 206;
                                      }
                                  } else {
                                      if (features[42] < 15) {
                                          return 207;
                                      } else {
                                          return 85;
                                      }
                                  }
                              } else {
                                  if (features[20] < 14) {
                                      if (features[30] < 1) {
                                          return 208;
                                      } else {
                                          return 209;
                                      }
                                  } else {
                                      if (features[42] < 1) {
                                          return 3;
                                      } else {
                                          return 210;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[25] < 0) {
                              if (features[60] < 7) {
                                  if (features[44] < 13) {
                                      if (features[19] < 1) {
                                          return 0;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[30] < 1) {
                                          return 211;
                                      } else {
                                          return 21;
                                      }
                                  }
                              } else {
                                  if (features[41] < 6) {
                                      if (features[27] < 12) {
                                          return 212;
                                      } else {
                                          return 213;
                                      }
                                  } else {
                                      return 8;
                                  }
                              }
                          } else {
                              if (features[61] < 4) {
                                  if (features[58] < 0) {
                                      if (features[45] < 5) {
                                          return 214;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      if (features[45] < 3) {
                                          return 52;
                                      } else {
                                          return 215;
                                      }
                                  }
                              } else {
                                  if (features[5] < 4) {
                                      if (features[29] < 5) {
                                          return 216;
                                      } else {
                                          return 8;
                                      }
                                  } else {
                                      if (features[50] < 1) {
                                          return 217;
                                      } else {
                                          return 218;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[42] < 4) {
                          if (features[27] < 3) {
                              if (features[5] < 4) {
                                  if (features[10] < 13) {
                                      if (features[35] < 13) {
                                          return 4;
                                      } else {
                                          return 1;
                                      }
                                  } else {
                                      if (features[12] < 12) {
                                          return 219;
                                      } else {
                                          return 4;
                                      }
                                  }
                              } else {
                                  if (features[44] < 2) {
                                      return 1;
                                  } else {
                                      if (features[20] < 1) {
                                          return 220;
                                      } else {
                                          return 221;
                                      }
                                  }
                              }
                          } else {
                              if (features[5] < 7) {
                                  if (features[43] < 6) {
                                      if (features[38] < 3) {
                                          return 222;
                                      } else {
                                          return 223;
                                      }
                                  } else {
                                      if (features[4] < 0) {
                                          return 3;
                                      } else {
                                          return 224;
                                      }
                                  }
                              } else {
                                  if (features[22] < 0) {
                                      if (features[18] < 9) {
                                          return 0;
                                      } else {
                                          return 225;
                                      }
                                  } else {
                                      if (features[14] < 13) {
                                          return 226;
                                      } else {
                                          return 21;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[62] < 2) {
                              if (features[20] < 15) {
                                  if (features[35] < 9) {
                                      if (features[41] < 2) {
                                          return 227;
                                      } else {
                                          return 228;
                                      }
                                  } else {
                                      if (features[33] < 3) {
                                          return 229;
                                      } else {
                                          return 230;
                                      }
                                  }
                              } else {
                                  if (features[10] < 14) {
                                      return 3;
                                  } else {
                                      if (features[3] < 13) {
                                          return 138;
                                      } else {
                                          return 231;
                                      }
                                  }
                              }
                          } else {
                              if (features[46] < 3) {
                                  if (features[58] < 6) {
                                      if (features[51] < 9) {
                                          return 2;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      return 4;
                                  }
                              } else {
                                  if (features[21] < 3) {
                                      return 19;
                                  } else {
                                      if (features[37] < 14) {
                                          return 0;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          }
        }
        

static inline int32_t forest_tree_9(const int16_t *features, int32_t features_length) {
          if (features[30] < 1) {
              if (features[20] < 3) {
                  if (features[42] < 9) {
                      if (features[37] < 15) {
                          if (features[26] < 15) {
                              if (features[5] < 4) {
                                  if (features[61] < 15) {
                                      if (features[27] < 13) {
                                          return 1;
                                      } else {
                                          return 232;
                                      }
                                  } else {
                                      if (features[53] < 5) {
                                          return 1;
                                      } else {
                                          return 3;
                                      }
                                  }
                              } else {
                                  if (features[28] < 13) {
                                      if (features[6] < 1) {
                                          return 233;
                                      } else {
                                          return 234;
                                      }
                                  } else {
                                      if (features[53] < 4) {
                                          return 1;
                                      } else {
                                          return 235;
                                      }
                                  }
                              }
                          } else {
                              if (features[20] < 0) {
                                  return 5;
                              } else {
                                  if (features[59] < 10) {
                                      return 21;
                                  } else {
                                      if (features[11] < 6) {
                                          return 2;
                                      } else {
                                          return 5;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[36] < 14) {
                              if (features[54] < 0) {
                                  return 0;
                              } else {
                                  return 5;
                              }
                          } else {
                              return 21;
                          }
                      }
                  } else {
                      if (features[41] < 9) {
                          if (features[58] < 5) {
                              if (features[18] < 6) {
                                  if (features[54] < 3) {
                                      return 4;
                                  } else {
                                      if (features[62] < 13) {
                                          return 19;
                                      } else {
                                          return 2;
                                      }
                                  }
                              } else {
                                  if (features[26] < 8) {
                                      return 13;
                                  } else {
                                      if (features[22] < 1) {
                                          return 236;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          } else {
                              if (features[43] < 6) {
                                  return 2;
                              } else {
                                  if (features[19] < 2) {
                                      return 5;
                                  } else {
                                      if (features[12] < 5) {
                                          return 19;
                                      } else {
                                          return 21;
                                      }
                                  }
                              }
                          }
                      } else {
                          return 8;
                      }
                  }
              } else {
                  if (features[38] < 0) {
                      if (features[9] < 0) {
                          if (features[42] < 10) {
                              if (features[35] < 1) {
                                  if (features[3] < 15) {
                                      if (features[6] < 2) {
                                          return 237;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[63] < 2) {
                                          return 238;
                                      } else {
                                          return 4;
                                      }
                                  }
                              } else {
                                  if (features[19] < 7) {
                                      if (features[37] < 2) {
                                          return 2;
                                      } else {
                                          return 239;
                                      }
                                  } else {
                                      if (features[10] < 5) {
                                          return 240;
                                      } else {
                                          return 241;
                                      }
                                  }
                              }
                          } else {
                              if (features[45] < 3) {
                                  if (features[35] < 14) {
                                      if (features[49] < 1) {
                                          return 2;
                                      } else {
                                          return 4;
                                      }
                                  } else {
                                      if (features[20] < 9) {
                                          return 2;
                                      } else {
                                          return 3;
                                      }
                                  }
                              } else {
                                  if (features[28] < 11) {
                                      if (features[28] < 2) {
                                          return 19;
                                      } else {
                                          return 242;
                                      }
                                  } else {
                                      if (features[11] < 3) {
                                          return 3;
                                      } else {
                                          return 2;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[57] < 0) {
                              if (features[34] < 3) {
                                  if (features[5] < 8) {
                                      if (features[10] < 14) {
                                          return 243;
                                      } else {
                                          return 244;
                                      }
                                  } else {
                                      if (features[52] < 11) {
                                          return 245;
                                      } else {
                                          return 246;
                                      }
                                  }
                              } else {
                                  if (features[1] < 0) {
                                      if (features[50] < 3) {
                                          return 247;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[58] < 10) {
                                          return 248;
                                      } else {
                                          return 249;
                                      }
                                  }
                              }
                          } else {
                              if (features[45] < 6) {
                                  if (features[50] < 4) {
                                      return 0;
                                  } else {
                                      if (features[51] < 1) {
                                          return 2;
                                      } else {
                                          return 250;
                                      }
                                  }
                              } else {
                                  if (features[10] < 14) {
                                      return 0;
                                  } else {
                                      if (features[26] < 8) {
                                          return 251;
                                      } else {
                                          return 5;
                                      }
                                  }
                              }
                          }
                      }
                  } else {
                      if (features[26] < 5) {
                          if (features[45] < 8) {
                              if (features[53] < 2) {
                                  return 21;
                              } else {
                                  if (features[55] < 1) {
                                      return 0;
                                  } else {
                                      return 1;
                                  }
                              }
                          } else {
                              if (features[4] < 7) {
                                  return 1;
                              } else {
                                  if (features[37] < 14) {
                                      if (features[60] < 4) {
                                          return 21;
                                      } else {
                                          return 0;
                                      }
                                  } else {
                                      return 0;
                                  }
                              }
                          }
                      } else {
                          if (features[19] < 9) {
                              if (features[43] < 6) {
                                  if (features[4] < 11) {
                                      return 1;
                                  } else {
                                      if (features[26] < 11) {
                                          return 252;
                                      } else {
                                          return 128;
                                      }
                                  }
                              } else {
                                  if (features[52] < 8) {
                                      if (features[13] < 14) {
                                          return 2;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      return 8;
                                  }
                              }
                          } else {
                              if (features[61] < 9) {
                                  if (features[36] < 8) {
                                      return 2;
                                  } else {
                                      return 8;
                                  }
                              } else {
                                  if (features[36] < 7) {
                                      if (features[38] < 5) {
                                          return 1;
                                      } else {
                                          return 5;
                                      }
                                  } else {
                                      if (features[6] < 0) {
                                          return 253;
                                      } else {
                                          return 3;
                                      }
                                  }
                              }
                          }
                      }
                  }
              }
          } else {
              if (features[50] < 8) {
                  if (features[43] < 0) {
                      if (features[33] < 2) {
                          if (features[3] < 0) {
                              if (features[46] < 0) {
                                  return 1;
                              } else {
                                  return 3;
                              }
                          } else {
                              if (features[21] < 5) {
                                  return 5;
                              } else {
                                  if (features[44] < 12) {
                                      return 1;
                                  } else {
                                      if (features[27] < 8) {
                                          return 4;
                                      } else {
                                          return 1;
                                      }
                                  }
                              }
                          }
                      } else {
                          if (features[30] < 9) {
                              if (features[25] < 2) {
                                  if (features[3] < 4) {
                                      return 3;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[11] < 11) {
                                      return 5;
                                  } else {
                                      return 13;
                                  }
                              }
                          } else {
                              return 8;
                          }
                      }
                  } else {
                      if (features[58] < 0) {
                          if (features[60] < 11) {
                              if (features[4] < 10) {
                                  if (features[5] < 5) {
                                      return 8;
                                  } else {
                                      if (features[37] < 11) {
                                          return 21;
                                      } else {
                                          return 1;
                                      }
                                  }
                              } else {
                                  if (features[25] < 2) {
                                      if (features[4] < 11) {
                                          return 254;
                                      } else {
                                          return 21;
                                      }
                                  } else {
                                      if (features[33] < 6) {
                                          return 255;
                                      } else {
                                          return 8;
                                      }
                                  }
                              }
                          } else {
                              if (features[46] < 5) {
                                  if (features[7] < 1) {
                                      return 8;
                                  } else {
                                      return 21;
                                  }
                              } else {
                                  if (features[2] < 1) {
                                      if (features[61] < 12) {
                                          return 19;
                                      } else {
                                          return 3;
                                      }
                                  } else {
                                      return 13;
                                  }
                              }
                          }
                      } else {
                          if (features[18] < 15) {
                              if (features[62] < 1) {
                                  if (features[51] < 7) {
                                      if (features[13] < 6) {
                                          return 5;
                                      } else {
                                          return 2;
                                      }
                                  } else {
                                      if (features[60] < 9) {
                                          return 21;
                                      } else {
                                          return 256;
                                      }
                                  }
                              } else {
                                  if (features[36] < 1) {
                                      return 13;
                                  } else {
                                      return 4;
                                  }
                              }
                          } else {
                              if (features[53] < 5) {
                                  return 8;
                              } else {
                                  return 1;
                              }
                          }
                      }
                  }
              } else {
                  if (features[27] < 7) {
                      if (features[59] < 7) {
                          if (features[5] < 6) {
                              return 8;
                          } else {
                              return 4;
                          }
                      } else {
                          if (features[33] < 1) {
                              if (features[36] < 2) {
                                  return 13;
                              } else {
                                  return 1;
                              }
                          } else {
                              if (features[28] < 9) {
                                  return 13;
                              } else {
                                  return 0;
                              }
                          }
                      }
                  } else {
                      if (features[36] < 5) {
                          if (features[34] < 10) {
                              if (features[46] < 3) {
                                  return 5;
                              } else {
                                  if (features[21] < 4) {
                                      return 5;
                                  } else {
                                      return 1;
                                  }
                              }
                          } else {
                              if (features[41] < 4) {
                                  return 13;
                              } else {
                                  if (features[37] < 13) {
                                      if (features[21] < 5) {
                                          return 8;
                                      } else {
                                          return 13;
                                      }
                                  } else {
                                      return 8;
                                  }
                              }
                          }
                      } else {
                          if (features[3] < 14) {
                              if (features[18] < 5) {
                                  return 21;
                              } else {
                                  if (features[12] < 3) {
                                      return 1;
                                  } else {
                                      return 2;
                                  }
                              }
                          } else {
                              if (features[53] < 4) {
                                  return 21;
                              } else {
                                  return 19;
                              }
                          }
                      }
                  }
              }
          }
        }
        

static const uint8_t forest_leaves[2570] = { 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 0, 231, 0, 0, 0, 0, 0, 0, 0, 226, 0, 28, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 248, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 0, 127, 32, 0, 0, 0, 0, 127, 0, 0, 0, 95, 0, 0, 0, 213, 10, 0, 0, 0, 0, 30, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 251, 0, 94, 0, 67, 0, 0, 0, 0, 0, 94, 0, 0, 0, 12, 0, 242, 0, 0, 0, 0, 6, 0, 6, 0, 0, 6, 0, 0, 0, 237, 0, 190, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 2, 0, 0, 252, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 127, 0, 0, 127, 0, 0, 0, 0, 0, 0, 42, 212, 0, 0, 0, 0, 0, 0, 0, 0, 203, 0, 0, 51, 0, 0, 0, 0, 0, 0, 169, 0, 0, 0, 0, 0, 0, 85, 0, 0, 0, 212, 0, 0, 0, 0, 0, 42, 0, 0, 36, 0, 18, 0, 0, 0, 0, 200, 0, 0, 127, 0, 0, 0, 0, 0, 0, 127, 0, 0, 36, 0, 0, 73, 36, 0, 36, 18, 54, 0, 145, 0, 0, 0, 0, 109, 0, 0, 0, 109, 0, 0, 0, 0, 0, 145, 0, 0, 0, 0, 0, 0, 0, 0, 0, 27, 0, 227, 0, 0, 0, 0, 0, 0, 203, 0, 0, 0, 51, 0, 0, 228, 7, 0, 0, 0, 0, 19, 0, 0, 0, 203, 0, 0, 0, 0, 0, 51, 0, 0, 0, 27, 0, 0, 94, 67, 0, 53, 13, 0, 0, 0, 0, 0, 0, 0, 0, 220, 34, 0, 0, 0, 218, 0, 0, 0, 0, 27, 9, 0, 0, 0, 203, 0, 0, 0, 0, 51, 0, 0, 0, 102, 0, 0, 51, 0, 0, 0, 102, 0, 18, 0, 236, 0, 0, 0, 0, 0, 0, 0, 0, 127, 127, 0, 0, 0, 0, 0, 0, 0, 151, 7, 0, 21, 41, 21, 0, 14, 0, 0, 0, 0, 0, 0, 85, 0, 0, 169, 0, 0, 109, 0, 0, 0, 0, 0, 0, 24, 121, 0, 0, 24, 0, 48, 0, 0, 97, 73, 12, 0, 42, 42, 0, 85, 0, 0, 64, 21, 0, 0, 0, 0, 0, 0, 0, 4, 0, 250, 0, 0, 64, 0, 0, 0, 0, 0, 0, 190, 0, 0, 234, 0, 0, 0, 0, 0, 0, 20, 0, 0, 42, 0, 0, 0, 0, 0, 0, 212, 0, 0, 127, 0, 0, 0, 0, 0, 127, 0, 0, 0, 0, 203, 0, 0, 51, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 7, 228, 0, 0, 0, 0, 0, 42, 0, 0, 0, 0, 212, 0, 0, 0, 0, 242, 0, 4, 2, 0, 6, 0, 0, 0, 0, 0, 0, 0, 12, 19, 223, 0, 0, 0, 0, 7, 11, 225, 4, 0, 7, 28, 0, 0, 0, 0, 0, 28, 0, 0, 198, 0, 0, 0, 0, 0, 229, 0, 0, 0, 25, 0, 0, 0, 0, 0, 241, 13, 0, 0, 0, 0, 0, 0, 0, 0, 152, 0, 102, 0, 0, 0, 236, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 226, 0, 0, 0, 0, 0, 28, 0, 48, 0, 0, 16, 0, 0, 0, 159, 0, 32, 0, 0, 0, 0, 234, 0, 0, 20, 0, 0, 0, 0, 102, 85, 0, 0, 0, 0, 34, 34, 0, 51, 0, 0, 178, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 218, 36, 0, 218, 0, 0, 0, 0, 0, 0, 36, 0, 0, 0, 0, 159, 0, 32, 0, 0, 0, 64, 169, 0, 0, 0, 0, 0, 0, 0, 85, 0, 0, 0, 7, 245, 0, 0, 0, 0, 0, 2, 0, 109, 0, 36, 0, 36, 0, 0, 0, 73, 0, 7, 215, 0, 0, 0, 0, 0, 33, 0, 0, 0, 51, 34, 0, 0, 0, 0, 169, 0, 0, 31, 6, 0, 0, 0, 0, 0, 200, 17, 0, 0, 0, 127, 0, 0, 127, 0, 0, 0, 0, 152, 0, 0, 0, 102, 0, 0, 0, 0, 0, 85, 169, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 244, 0, 0, 0, 0, 0, 10, 0, 64, 0, 0, 0, 0, 0, 190, 0, 0, 11, 0, 169, 42, 0, 11, 0, 0, 21, 0, 0, 0, 46, 208, 0, 0, 0, 0, 0, 0, 0, 0, 0, 85, 0, 0, 0, 0, 169, 0, 0, 0, 0, 0, 0, 127, 0, 0, 127, 0, 0, 0, 0, 73, 0, 0, 0, 0, 0, 181, 0, 7, 0, 0, 0, 0, 0, 0, 247, 0, 0, 0, 67, 0, 0, 27, 0, 0, 134, 27, 0, 3, 0, 229, 0, 6, 0, 0, 0, 17, 0, 45, 0, 90, 0, 45, 0, 0, 0, 75, 0, 0, 0, 0, 46, 0, 0, 69, 0, 139, 0, 0, 0, 23, 0, 162, 0, 0, 0, 69, 0, 0, 0, 127, 0, 0, 0, 0, 127, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 246, 0, 0, 0, 0, 0, 64, 0, 127, 64, 0, 0, 25, 0, 0, 0, 0, 152, 51, 0, 25, 0, 0, 0, 0, 0, 0, 251, 0, 0, 3, 0, 76, 0, 0, 0, 0, 178, 0, 0, 0, 0, 0, 0, 0, 169, 0, 0, 0, 85, 0, 0, 0, 0, 0, 0, 98, 98, 0, 20, 39, 85, 0, 0, 0, 0, 0, 0, 0, 169, 0, 0, 0, 4, 245, 0, 0, 0, 0, 0, 4, 0, 12, 6, 23, 0, 121, 0, 0, 23, 69, 0, 127, 0, 71, 0, 42, 0, 0, 0, 14, 0, 0, 0, 0, 0, 190, 0, 0, 0, 64, 0, 0, 7, 20, 0, 182, 0, 26, 7, 13, 0, 38, 0, 0, 0, 0, 9, 9, 198, 0, 0, 0, 0, 0, 0, 64, 0, 0, 190, 0, 0, 242, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 56, 0, 0, 198, 0, 0, 0, 0, 0, 0, 145, 0, 0, 109, 0, 0, 113, 0, 0, 0, 28, 113, 0, 0, 0, 0, 0, 51, 0, 0, 0, 0, 0, 203, 0, 0, 5, 0, 0, 0, 0, 249, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 246, 0, 0, 19, 232, 0, 0, 0, 2, 0, 0, 0, 0, 87, 31, 37, 6, 0, 0, 0, 74, 19, 0, 0, 105, 134, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 249, 0, 42, 0, 0, 0, 42, 0, 21, 0, 148, 0, 0, 0, 102, 51, 0, 102, 0, 0, 0, 203, 0, 0, 0, 0, 0, 0, 0, 0, 51, 0, 0, 0, 0, 175, 0, 0, 79, 0, 0, 0, 169, 0, 0, 0, 85, 0, 0, 0, 0, 0, 36, 18, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 235, 0, 0, 19, 0, 0, 0, 0, 0, 0, 85, 0, 0, 0, 169, 0, 36, 0, 0, 0, 36, 0, 0, 0, 181, 0, 0, 0, 249, 0, 0, 0, 0, 0, 5, 0, 0, 0, 181, 0, 0, 0, 0, 73, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 226, 0, 0, 78, 0, 0, 0, 0, 59, 117, 0, 0, 0, 229, 0, 0, 0, 0, 0, 25, 0, 0, 0, 127, 0, 0, 0, 127, 0, 0, 0, 85, 0, 0, 0, 0, 0, 169, 0, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 233, 0, 0, 0, 127, 0, 127, 0, 0, 0, 0, 0, 12, 36, 48, 36, 0, 0, 48, 24, 48, 0, 244, 7, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 127, 0, 0, 0, 127, 0, 0, 0, 0, 157, 97, 0, 0, 0, 0, 0, 0, 0, 12, 24, 0, 0, 0, 0, 36, 73, 109, 64, 0, 0, 95, 0, 0, 0, 0, 95, 0, 0, 0, 0, 19, 0, 8, 0, 0, 219, 8, 0, 4, 0, 0, 247, 0, 0, 4, 0, 0, 0, 23, 0, 0, 219, 0, 0, 0, 12, 0, 95, 106, 0, 0, 0, 0, 0, 0, 42, 11, 0, 0, 85, 0, 0, 0, 85, 85, 0, 0, 0, 127, 0, 0, 0, 0, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 190, 0, 64, 0, 0, 242, 0, 0, 0, 0, 0, 0, 0, 12, 0, 145, 0, 0, 109, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 127, 85, 0, 152, 0, 0, 0, 0, 0, 0, 102, 0, 0, 42, 42, 0, 0, 0, 0, 42, 85, 42, 0, 0, 64, 127, 0, 0, 0, 64, 0, 0, 0, 0, 73, 18, 0, 18, 0, 36, 36, 73, 0, 0, 0, 206, 12, 36, 0, 0, 0, 0, 0, 0, 0, 169, 0, 85, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 248, 0, 0, 237, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 190, 0, 0, 0, 0, 102, 0, 0, 0, 0, 0, 0, 0, 152, 0, 95, 0, 95, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 184, 70, 0, 0, 0, 0, 5, 0, 243, 0, 0, 0, 0, 0, 5, 0, 8, 0, 15, 0, 0, 0, 0, 92, 139, 0, 0, 70, 11, 0, 0, 0, 0, 157, 16, 0, 0, 0, 234, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 102, 152, 0, 0, 0, 0, 0, 145, 0, 0, 0, 109, 0, 0, 0, 0, 0, 0, 0, 238, 0, 16, 0, 3, 0, 0, 0, 0, 0, 251, 0, 0, 0, 9, 236, 0, 0, 0, 0, 0, 9, 0, 0, 0, 69, 0, 0, 0, 0, 0, 185, 0, 0, 0, 0, 0, 0, 21, 0, 0, 233, 0, 0, 10, 20, 225, 0, 0, 0, 0, 0, 0, 0, 0, 95, 32, 0, 0, 0, 0, 64, 64, 0, 0, 0, 0, 0, 141, 0, 0, 56, 56, 0, 0, 0, 230, 0, 0, 0, 0, 0, 24, 0, 0, 209, 0, 0, 0, 0, 0, 45, 0, 0, 0, 6, 12, 0, 12, 0, 0, 6, 217, 0, 0, 73, 0, 0, 0, 0, 0, 109, 73, 0, 0, 0, 240, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 234, 0, 0, 0, 0, 0, 190, 64, 0, 0, 0, 12, 0, 12, 0, 0, 0, 0, 12, 207, 12, 25, 0, 0, 25, 0, 0, 0, 127, 0, 76, 0, 0, 0, 0, 0, 178, 25, 0, 0, 51, 0, 0, 0, 20, 0, 122, 102, 0, 10, 0, 0, 127, 127, 0, 0, 0, 0, 0, 0, 0, 212, 0, 0, 42, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 64, 159, 246, 0, 0, 0, 5, 0, 0, 0, 0, 3, 0, 0, 0, 0, 203, 51, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 238, 0, 0, 92, 115, 0, 0, 0, 0, 0, 46, 0, 30, 0, 0, 0, 0, 30, 0, 172, 22, 56, 0, 0, 0, 0, 169, 0, 0, 0, 28, 0, 18, 0, 0, 0, 26, 0, 9, 18, 184, 0, 181, 36, 0, 36, 0, 0, 0, 0, 0, 0, 226, 0, 0, 28, 0, 0, 0, 0, 0, 0, 85, 0, 0, 0, 0, 169, 0, 0, 0, 0, 198, 56, 0, 0, 0, 0, 0, 0, 0, 0, 145, 0, 0, 0, 0, 0, 36, 73, 0, 0, 0, 15, 239, 0, 0, 0, 0, 0, 0, 0, 0, 11, 33, 0, 0, 0, 0, 188, 22, 7, 14, 0, 0, 82, 0, 0, 21, 0, 130, 0, 203, 0, 0, 0, 0, 0, 0, 51, 0, 0, 169, 0, 85, 0, 0, 0, 0, 0, 0, 0, 51, 68, 0, 17, 0, 85, 34, 0, 0, 0, 229, 0, 0, 0, 0, 0, 0, 25, 0, 0, 12, 0, 0, 185, 0, 0, 12, 0, 46, 0, 0, 0, 0, 212, 0, 0, 42, 0, 0, 0, 42, 0, 0, 0, 0, 212, 0, 0, 0, 0, 239, 0, 0, 15, 0, 0, 0, 0, 0, 85, 0, 0, 0, 0, 0, 85, 0, 85, 0, 0, 0, 226, 28, 0, 0, 0, 0, 0, 0, 0, 0, 109, 0, 0, 0, 0, 145, 0, 0, 0, 0, 117, 137, 0, 0, 0, 0, 0, 0, 0, 0, 0, 102, 0, 44, 0, 0, 0, 109, 0, 0, 0, 19, 0, 15, 0, 0, 0, 220, 0, 0, 180, 0, 0, 13, 0, 0, 60, 0, 0, 0, 0, 23, 0, 220, 0, 0, 11, 0, 0, 0, 0, 115, 0, 0, 0, 12, 12, 115, 0, 0, 51, 0, 102, 51, 0, 0, 0, 51, 0, 0, 0, 102, 0, 0, 152, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0, 20, 223, 0, 0, 0, 0, 0, 0, 34, 152, 68, 0, 0, 0, 0, 176, 20, 0, 0, 0, 0, 59, 0, 0, 0, 0, 0, 0, 169, 0, 0, 0, 85, 0, 0, 14, 0, 0, 127, 0, 0, 113, 0, 0, 0, 0, 8, 0, 221, 0, 16, 8, 0, 0, 0, 0, 85, 0, 28, 0, 0, 141, 0, 0, 0, 0, 0, 0, 0, 252, 0, 2, 0, 0, 127, 64, 0, 0, 0, 0, 0, 0, 64, 0, 0, 64, 190, 0, 0, 0, 0, 0, 0, 0, 0, 76, 51, 0, 0, 0, 51, 0, 76, 0, 251, 3, 0, 0, 0, 0, 0, 0, 0, 0, 180, 0, 11, 0, 11, 0, 0, 53, 0, 127, 0, 0, 0, 0, 127, 0, 0, 0, 0, 0, 39, 39, 117, 0, 0, 0, 0, 59, 0, 0, 7, 228, 7, 0, 4, 0, 0, 7, 0, 0, 0, 0, 190, 0, 0, 0, 32, 0, 32, 0, 0, 0, 0, 0, 95, 0, 0, 159, 0, 0, 102, 0, 0, 102, 0, 0, 0, 0, 51, 0, 102, 0, 51, 0, 0, 0, 0, 102, 0, 0, 0, 0, 0, 0, 203, 0, 0, 51, 0, 0, 0, 249, 0, 0, 0, 0, 0, 5, 0, 0, 0, 51, 102, 0, 0, 0, 0, 102, 0, 0, 0, 0, 222, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 25, 0, 203, 0, 0, 25, 0, 0, 85, 0, 0, 0, 0, 169, 0, 0, 0, 0, 0, 0, 0, 0, 0, 102, 0, 152, 127, 0, 0, 0, 127, 0, 0, 0, 0, 0 };

int32_t forest_predict(const int16_t *features, int32_t features_length) {

        float out[10] = {0.0f,};

        int offset = 0;

        offset = 10*forest_tree_0(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_1(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_2(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_3(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_4(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_5(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_6(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_7(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_8(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_9(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    
        // argmax over probabilities
        int32_t most_voted_class = -1;
        float most_voted_proba = 0.0f;
        for (int32_t i=0; i<10; i++) {

            if (out[i] > most_voted_proba) {
                most_voted_class = i;
                most_voted_proba = out[i];
            }
        }
        return most_voted_class;
    }
    

int forest_predict_proba(const int16_t *features, int32_t features_length, float *out, int out_length) {

        int offset = 0;

        for (int i=0; i<out_length; i++) {
            out[i] = 0.0f;
        }

        offset = 10*forest_tree_0(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_1(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_2(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_3(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_4(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_5(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_6(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_7(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_8(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    offset = 10*forest_tree_9(features, features_length);
            for (int i=0; i<10; i++) { out[i] += (forest_leaves[offset+i]/255.0f); }
        
    
        // compute mean
        for (int i=0; i<out_length; i++) {
            out[i] = out[i] / 10;
        }
        return 0;
    }
    